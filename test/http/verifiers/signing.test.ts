// What `sign` of the verifiers makes: accepted by its own verifier, and made as the standards say, by code that shares
// nothing.
import { createHash, verify as verifyBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  basicAuth,
  headerToken,
  messageSignature,
  publicKeySignature,
  type SignatureVerifier,
} from 'transfer-callbacks';
import { keyPairs, toPem, toPrivatePem } from './keys.js';

const body = '{"event":"transfer.success","data": {"id": "1"}}';
const url = 'https://merchant.example/public/callbacks?b=1';

function accepts(verify: SignatureVerifier, headers: Record<string, string>, text = body): boolean {
  return verify({ method: 'POST', headers }, undefined, Buffer.from(text));
}

const kinds = [
  ['rsa', 'sha256'],
  ['p256', 'sha256'],
  ['p384', 'sha384'],
  ['ed25519', null],
] as const;

describe.each(kinds)('with a key of %s', (kind, hash) => {
  const [keys, foreign] = keyPairs[kind];
  const secret = toPrivatePem(keys);

  test.each([{}, { encoding: 'hex' as const }, { timestamp: 't=' }])(
    'sign of publicKeySignature with %j makes what it accepts, of no other body',
    (changed) => {
      const verify = publicKeySignature({ header: 'X-Sign', publicKeys: [toPem(foreign), toPem(keys)], ...changed });
      const signed = verify.sign(body, { secret });
      expect(accepts(verify, signed)).toBe(true);
      expect(accepts(verify, signed, body.replace('"1"', '"2"'))).toBe(false);
      expect(accepts(verify, verify.sign(Buffer.from(body), { secret: secret.replaceAll('\n', '\\n') }))).toBe(true);
    },
  );

  test('sign of publicKeySignature writes what it signs by the algorithm of the key, ECDSA in DER', () => {
    const verify = publicKeySignature({ header: 'x-sign', publicKeys: toPem(keys), signed: '{x-id}{body}' });
    const { 'x-sign': signature = '', ...others } = verify.sign(body, { secret, headers: { 'X-Id': '7' } });
    expect(others).toEqual({ 'x-id': '7' });
    expect(verifyBytes(hash, Buffer.from(`7${body}`), keys.publicKey, Buffer.from(signature, 'base64'))).toBe(true);
  });

  test.each(['der', 'ieee-p1363'] as const)(
    'sign of messageSignature signs the base of RFC 9421, in %s',
    (dsaEncoding) => {
      const verify = messageSignature({ url, publicKeys: toPem(keys) });
      const options = { secret, dsaEncoding, headers: { 'signature-date': '2026-09-21T14:13:20Z' } };
      const before = Math.floor(Date.now() / 1_000);
      const { 'content-digest': digest, 'signature-input': input = '', signature = '' } = verify.sign(body, options);
      expect(digest).toBe(`sha-512=:${createHash('sha512').update(body).digest('base64')}:`);
      const params = input.slice('sig='.length);
      const names = '"content-digest" "@method" "@authority" "@path" "signature-date"';
      const [, created, expires] = /;alg="[\w-]+";created=(\d+);expires=(\d+)$/.exec(params) ?? [];
      expect(params.startsWith(`(${names});`)).toBe(true);
      expect(Number(created)).toBeGreaterThanOrEqual(before);
      expect(Number(expires)).toBe(Number(created) + 60);
      const base = [
        `"content-digest": ${String(digest)}`,
        ...['"@method": POST', '"@authority": merchant.example', '"@path": /public/callbacks'],
        ...['"signature-date": 2026-09-21T14:13:20Z', `"@signature-params": ${params}`],
      ].join('\n');
      const bytes = Buffer.from(signature.slice('sig=:'.length, -1), 'base64');
      expect(verifyBytes(hash, Buffer.from(base), { key: keys.publicKey, dsaEncoding }, bytes)).toBe(true);
    },
  );
});

test('RFC 9421 has ECDSA as two numbers, which is the default of messageSignature', () => {
  const [keys] = keyPairs.p256;
  const { signature = '' } = messageSignature({ url, publicKeys: toPem(keys) }).sign(body, {
    secret: toPrivatePem(keys),
  });
  expect(Buffer.from(signature.slice('sig=:'.length, -1), 'base64')).toHaveLength(64);
});

test('sign refuses another key, none, and what it does not know, and shows no key', () => {
  const [keys, foreign] = keyPairs.rsa;
  const verifiers = [
    publicKeySignature({ header: 'x-sign', publicKeys: toPem(keys) }),
    messageSignature({ url, publicKeys: toPem(keys) }),
  ];
  const right = { secret: toPrivatePem(keys) };
  const wrong = 'Expected `secret` to be the private key, in PEM, of one of `publicKeys`, got ';
  const calls: [unknown[], string][] = [
    [[body, { secret: toPrivatePem(foreign) }], `${wrong}a string of`],
    [[body, { secret: toPem(keys) }], `${wrong}a string of 451 characters. Correct its environment variable.`],
    [[body, { secret: undefined }], `${wrong}undefined. Is its environment variable set?`],
    [[body], 'Expected `options` to be an object, got undefined.'],
    [[7, right], 'Expected `body` to be the string or the bytes that are sent, got a number.'],
    [[body, { ...right, key: 'x' }], 'Unknown option `key`'],
    [[body, { ...right, headers: null }], 'Expected `headers` to be an object with a string for each name, got null.'],
    [
      [body, { ...right, headers: [] }],
      'Expected `headers` to be an object with a string for each name, got an array.',
    ],
    [[body, { ...right, dsaEncoding: 'raw' }], "Expected `dsaEncoding` to be 'der' or 'ieee-p1363'"],
  ];
  for (const verify of verifiers) {
    for (const [args, message] of calls) {
      const sign = () => verify.sign(...(args as Parameters<SignatureVerifier['sign']>));
      expect(sign).toThrow(message);
      expect(sign).not.toThrow(/BEGIN|MII/);
    }
  }
  const covering = messageSignature({ url, publicKeys: toPem(keys), covered: ['x-id'] });
  expect(() => covering.sign(body, right)).toThrow('a string with the header `x-id`, which is signed');
});

test('the verifiers of a secret in a header have the header that they accept, with the first secret', () => {
  const [secret, older] = ['first-secret-0123456789', 'older-secret-0123456789'];
  const password = 'first password 0123456789 ü';
  for (const verify of [
    headerToken('X-Token', [secret, older]),
    basicAuth([
      { username: 'service', password },
      { username: 'service', password: older },
    ]),
  ]) {
    const headers = verify.sign?.() ?? expect.fail('It has no sign.');
    expect(verify({ headers })).toBe(true);
    expect(Object.keys(headers)).toHaveLength(1);
  }
  expect(headerToken('X-Token', [secret, older]).sign?.()).toEqual({ 'x-token': secret });
});
