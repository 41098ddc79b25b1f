import { constants, sign as signBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { publicKeySignature, type SignatureVerifier } from 'transfer-callbacks';
import { keyPairs, toPem, type KeyPair } from './keys.js';

type Sign = (body: string | Uint8Array, keys: KeyPair) => Buffer;
const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 };
const signer =
  (hash: string | null, options: object = {}): Sign =>
  (body, { privateKey: key }) =>
    signBytes(hash, Buffer.from(body), { key, ...options });
const raw = { dsaEncoding: 'ieee-p1363' };
const algorithms: [string, keyof typeof keyPairs, Sign][] = [
  ['RSA with SHA-256', 'rsa', signer('sha256')],
  ['RSA with SHA-512 and PSS', 'rsa', signer('sha512', pss)],
  ['ECDSA P-256 in DER', 'p256', signer('sha256')],
  ['ECDSA P-256, raw', 'p256', signer('sha256', raw)],
  ['ECDSA P-384 in DER', 'p384', signer('sha384')],
  ['ECDSA P-384, raw', 'p384', signer('sha384', raw)],
  ['Ed25519', 'ed25519', signer(null)],
];
const header = 'X-Signature';
const accept = (verify: SignatureVerifier, value: string): boolean =>
  verify({ headers: { 'x-signature': value } }, undefined, Buffer.from('the body'));
const signEd = signer(null);
const sha256 = signer('sha256');

test.each(algorithms)('a signature by %s is accepted, of no other bytes and by no other key', (_, kind, sign) => {
  const [keys, foreign] = keyPairs[kind];
  const verify = publicKeySignature({ header, publicKeys: toPem(keys) });
  const accepts = (value: string) => accept(verify, value);
  const signature = sign('the body', keys);
  const changed = Buffer.from(signature);
  changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
  const forged = [
    ...[changed, signature.subarray(1), signature.subarray(0, -1), Buffer.concat([signature, Buffer.from([0])])],
    ...[Buffer.alloc(signature.length), Buffer.alloc(signature.length, 0xff)],
    ...[sign('the body ', keys), sign('', keys), sign('the body', foreign)],
  ].map((each) => each.toString('base64'));
  const right = signature.toString('base64');
  for (const value of [...forged, '', 'x', ',', '='.repeat(90), right.slice(4)]) {
    expect([value, accepts(value)]).toEqual([value, false]);
  }
  // Two headers of that name are two signatures, of which one must be right.
  expect([accepts(right), accepts(`${String(forged[0])}, ${right}`)]).toEqual([true, true]);
});

test('during a rotation each of several keys and each of several signatures is tried, up to four', () => {
  const [newer] = keyPairs.p256;
  const [older, foreign] = keyPairs.ed25519;
  const verify = publicKeySignature({ header, publicKeys: [toPem(newer), undefined, toPem(older)], encoding: 'hex' });
  const accepts = (value: string) => accept(verify, value);
  const [a, b, x] = [sha256('the body', newer), signEd('the body', older), signEd('the body', foreign)].map((each) =>
    each.toString('hex'),
  ) as [string, string, string];
  // What is shorter than any signature is none.
  const short = ['00', '11', '22', '33'].map((byte) => byte.repeat(32)).join(' ');
  for (const value of [a, b, `v1=${x},v1=${b}`, `t=1,${a.toUpperCase()}`, `${x} ${x} ${x} ${a}`, `${short} ${b}`]) {
    expect([value, accepts(value)]).toEqual([value, true]);
  }
  for (const value of [x, `${b}0`, `0${b}`, `${x} ${x} ${x} ${x} ${b}`]) {
    expect([value, accepts(value)]).toEqual([value, false]);
  }
});

test.each([
  ['rsa', [signer('sha1'), signer('sha384'), signer('sha512')]],
  ['rsa', ['sha256', 'sha384'].map((hash) => signer(hash, pss))],
  ['p256', ['sha1', 'sha384', 'sha512'].flatMap((hash) => [signer(hash), signer(hash, raw)])],
  ['p384', ['sha1', 'sha256', 'sha512'].flatMap((hash) => [signer(hash), signer(hash, raw)])],
] as const)('a signature with a key of %s by an algorithm that is not documented is refused', (kind, signers) => {
  const [keys] = keyPairs[kind];
  const verify = publicKeySignature({ header, publicKeys: toPem(keys) });
  for (const sign of signers) {
    expect(accept(verify, sign('the body', keys).toString('base64'))).toBe(false);
  }
});

// Node signs with the longest salt unless it is told otherwise, RFC 9421 with 64 bytes.
test.each([
  ['no salt', 0],
  ['a salt of 20 bytes', 20],
  ['the longest salt', constants.RSA_PSS_SALTLEN_MAX_SIGN],
])('PSS with %s is accepted, of no other bytes', (_, saltLength) => {
  const [keys] = keyPairs.rsa;
  const sign = signer('sha512', { ...pss, saltLength });
  const verify = publicKeySignature({ header, publicKeys: toPem(keys) });
  const accepts = (text: string) => accept(verify, sign(text, keys).toString('base64'));
  expect([accepts('the body'), accepts('the body ')]).toEqual([true, false]);
});

// About one signature of 256 begins with a zero byte, and PSS signs the same bytes differently each time.
test('a signature by PSS without its leading zero byte is refused', () => {
  const [keys] = keyPairs.rsa;
  const sign = signer('sha512', pss);
  let signature = sign('the body', keys);
  while (signature.readUInt8(0) > 0) signature = sign('the body', keys);
  const verify = publicKeySignature({ header, publicKeys: toPem(keys) });
  const accepts = (value: Buffer): boolean => accept(verify, value.toString('base64'));
  expect([accepts(signature), accepts(signature.subarray(1))]).toEqual([true, false]);
});

/** OpenSSL made both. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUSKfMZNLK9lHNEfdxVKcn057FjPkwCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPc2VydmljZS5leGFtcGxlMB4XDTI2MTEyNzA5MzkwMloXDTI2
MTEyODA5MzkwMlowGjEYMBYGA1UEAwwPc2VydmljZS5leGFtcGxlMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE246dNMlYemcn7BaJwNQIEIbIb8SoCbXZgeZlUbuM
hp0pelcPjKyhm0VM/iGFAFOiN+Hqf9XKaF13Z6Z7mkuJnaNTMFEwHQYDVR0OBBYE
FLC3v+ZK37dcnNcweSNm4FDSjQrZMB8GA1UdIwQYMBaAFLC3v+ZK37dcnNcweSNm
4FDSjQrZMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgc6oHYZbh
xWPqYSkhaTXiNejRk3c86EKAuhTJeYrxUx8CIG0so9EkeRteHKtdVpZT7SFZocqq
7paM5QRSFFapfMLZ
-----END CERTIFICATE-----`;
const ofItsKey = 'MEYCIQD0WRSf3LX6QTQ+1d2oSmtp64M+8sq7SDbV5GtWNjBymgIhAOmghuUMkJ0ZyQfka+ip3KFm3VGC2GyRK5UmlH83MbDw';

test('a key may be written in one line, as a certificate, or in PKCS #1', () => {
  const [keys] = keyPairs.rsa;
  const pkcs1 = keys.publicKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  const signature = sha256('the body', keys).toString('base64');
  for (const publicKeys of [
    toPem(keys).trim().replaceAll('\n', '\\n'),
    `\n${toPem(keys)}\n`,
    toPem(keys).replaceAll('\n', '\r\n'),
    pkcs1,
  ]) {
    expect(accept(publicKeySignature({ header, publicKeys }), signature)).toBe(true);
  }
  const ofCertificate = publicKeySignature({ header, publicKeys: certificate });
  expect([accept(ofCertificate, ofItsKey), accept(ofCertificate, signature)]).toEqual([true, false]);
});
