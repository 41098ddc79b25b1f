import { constants, sign as signBytes } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { publicKeySignature } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../../support/servers/http-servers.js';
import { startGuarded } from '../support.js';
import { keyPairs, toPem, type KeyPair } from './keys.js';
import { rfc, toBase } from './rfc-9421.js';

afterEach(() => {
  vi.useRealTimers();
});

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
const signEd = signer(null);
const sha256 = signer('sha256');

describe.each(httpServers)('on $name', (server) => {
  test.each(algorithms)(
    'a signature by %s is accepted, of no other bytes and by no other key',
    async (_, kind, sign) => {
      const [keys, foreign] = keyPairs[kind];
      const { url, admits, refuses } = await startGuarded(
        server,
        publicKeySignature({ header, publicKeys: toPem(keys) }),
      );
      const one = transferSucceeded();
      const body = JSON.stringify(one);
      const signature = sign(body, keys);
      const sent = (value: Buffer | string) => ({
        headers: { [header]: typeof value === 'string' ? value : value.toString('base64') },
      });
      const changed = Buffer.from(signature);
      changed.writeUInt8(changed.readUInt8(40) ^ 1, 40);
      const forged = [
        ...[changed, signature.subarray(1), signature.subarray(0, -1), Buffer.concat([signature, Buffer.from([0])])],
        ...[Buffer.alloc(signature.length), Buffer.alloc(signature.length, 0xff)],
        ...[sign(`${body} `, keys), sign(JSON.stringify(one, undefined, 1), keys), sign(body, foreign)],
        ...['', 'x', ',', '='.repeat(90), signature.toString('base64').slice(4)],
      ];
      for (const each of forged) await refuses(url, sent(each), body);
      await refuses(url, {}, body);
      await refuses(url, sent(signature), `${body} `);
      await refuses(url, sent(signature), '');
      // Two headers of that name are two signatures, of which one must be right.
      const twice = [sign('x', keys), signature].map((each) => each.toString('base64'));
      await admits(url, { headers: { [header]: twice } }, one);
    },
  );

  test('during a rotation each of several keys and each of several signatures is tried, up to four', async () => {
    const [newer] = keyPairs.p256;
    const [older, foreign] = keyPairs.ed25519;
    const verify = publicKeySignature({ header, publicKeys: [toPem(newer), undefined, toPem(older)], encoding: 'hex' });
    const { url, admits, refuses } = await startGuarded(server, verify);
    const values = (body: string) => {
      const [a, b, x] = [sha256(body, newer), signEd(body, older), signEd(body, foreign)].map((each) =>
        each.toString('hex'),
      );
      // What is shorter than any signature is none.
      const short = ['00', '11', '22', '33'].map((byte) => byte.repeat(32)).join(' ');
      const right = [a, b, `v1=${x},v1=${b}`, `t=1,${a?.toUpperCase()}`, `${x} ${x} ${x} ${a}`, `${short} ${b}`];
      return { right, x };
    };
    for (const at of [0, 1, 2, 3, 4, 5]) {
      const one = transferSucceeded();
      await admits(url, { headers: { [header]: values(JSON.stringify(one)).right[at] } }, one);
    }
    const { right, x } = values('{}');
    for (const value of [x, `${right[1]}0`, `0${right[1]}`, `${x} ${x} ${x} ${x} ${right[1]}`]) {
      await refuses(url, { headers: { [header]: value } }, '{}');
    }
  });

  test('what is signed may have a timestamp and other headers, as with hmacSignature', async () => {
    const [keys] = keyPairs.ed25519;
    const verify = publicKeySignature({
      ...{ header, publicKeys: toPem(keys), encoding: 'hex' },
      ...{ timestamp: 'X-Time', signed: '{x-id}.{timestamp}{body}', toleranceMs: 60_000 },
    });
    const { url, admits, refuses } = await startGuarded(server, verify);
    const sentMs = 1_790_000_000_000;
    const time = String(sentMs / 1_000);
    const sent = (body: string, changed = {}) => {
      const signature = signEd(`7.${time}${body}`, keys).toString('hex');
      return { headers: { [header]: signature, 'X-Time': time, 'X-Id': '7', ...changed } };
    };
    const one = transferSucceeded();
    const body = JSON.stringify(one);
    vi.useFakeTimers({ toFake: ['Date'], now: sentMs + 60_000 });
    await admits(url, sent(body), one);
    for (const changed of [{ 'X-Id': '8' }, { 'X-Time': String(Number(time) + 1) }, { 'X-Time': undefined }]) {
      await refuses(url, sent(body, changed), body);
    }
    vi.setSystemTime(sentMs + 61_000);
    await refuses(url, sent(body), body);
  });
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
    const headers = { 'x-signature': sign('the body', keys).toString('base64') };
    expect(verify({ headers }, undefined, Buffer.from('the body'))).toBe(false);
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
  const body = Buffer.from('the body');
  const verify = publicKeySignature({ header, publicKeys: toPem(keys) });
  const accepts = (text: string) =>
    verify({ headers: { 'x-signature': sign(text, keys).toString('base64') } }, undefined, body);
  expect([accepts('the body'), accepts('the body ')]).toEqual([true, false]);
});

test.each(rfc.signatures)('the signature of RFC 9421 $name is one of its base', (example) => {
  const { publicKey, signature } = example;
  const base = toBase(example);
  const verify = publicKeySignature({ header: 'signature', publicKeys: publicKey });
  const accepts = (text: string): boolean => verify({ headers: { signature } }, undefined, Buffer.from(text));
  expect(accepts(base)).toBe(true);
  expect(accepts(`${base} `)).toBe(false);
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
  const signed = (key: KeyPair) => ({ headers: { signature: sha256('the body', key).toString('base64') } });
  const body = Buffer.from('the body');
  for (const publicKeys of [
    toPem(keys).trim().replaceAll('\n', '\\n'),
    `\n${toPem(keys)}\n`,
    toPem(keys).replaceAll('\n', '\r\n'),
    pkcs1,
  ]) {
    expect(publicKeySignature({ header: 'signature', publicKeys })(signed(keys), undefined, body)).toBe(true);
  }
  const ofCertificate = publicKeySignature({ header: 'signature', publicKeys: certificate });
  expect(ofCertificate({ headers: { signature: ofItsKey } }, undefined, body)).toBe(true);
  expect(ofCertificate(signed(keys), undefined, body)).toBe(false);
});

test('a request whose body was not read is refused', () => {
  const [keys] = keyPairs.ed25519;
  const verify = publicKeySignature({ header, publicKeys: toPem(keys) });
  const headers = { 'x-signature': signEd('', keys).toString('base64') };
  expect(verify({ headers }, undefined, Buffer.alloc(0))).toBe(true);
  expect(verify({ headers }, undefined, undefined)).toBe(false);
});
