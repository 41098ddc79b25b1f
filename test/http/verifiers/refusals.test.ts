import { expect, test } from 'vitest';
import { hmacSignature, messageSignature, publicKeySignature, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { plainServer } from '../../support/servers/http-servers.js';
import { startGuarded, verifiers } from '../support.js';
import { keyPairs, toPem, toPrivatePem } from './keys.js';

// What the log line says of a signature that was refused. The response says nothing: startGuarded compares it.

const [own, foreign] = keyPairs.ed25519;
const body = JSON.stringify(transferSucceeded());
const secret = 'the-secret-of-this-test';
const hmac = { header: 'x-sig', timestamp: 'x-time', signed: '{x-id}.{timestamp}.{body}', toleranceMs: 60_000 };
const hourAgo = String(Math.floor(Date.now() / 1_000) - 3_600);
const ofSecret = () => hmacSignature({ ...hmac, secrets: secret });
const signWith = (secrets: string, time?: string) =>
  hmacSignature({ ...hmac, secrets }).sign(body, { headers: { 'x-id': '7', ...(time && { 'x-time': time }) } });
const right = signWith(secret);
const url = 'https://merchant.example/callbacks';
const message = () => messageSignature({ url, publicKeys: toPem(own) });
const messageHeaders = message().sign(body, { secret: toPrivatePem(own) });
const publicKey = () => publicKeySignature({ header: 'x-sig', publicKeys: toPem(own) });

const without = (headers: Record<string, string>, name: string): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([each]) => each !== name));

const another = /: another signature: another secret or key, or other bytes/;

test.each<[string, () => Verifier<unknown>, Record<string, string>, RegExp]>([
  ['a missing time', ofSecret, without(right, 'x-time'), /: no header x-time$/],
  ['a missing part', ofSecret, without(right, 'x-id'), /: no header x-id$/],
  [
    'another encoding',
    ofSecret,
    { ...right, 'x-sig': Buffer.from(right['x-sig'] ?? '', 'hex').toString('base64') },
    /: no signature in hex of the expected length in the header x-sig$/,
  ],
  ['an old one', ofSecret, signWith(secret, hourAgo), /: a timestamp 36\d\d s old, with a tolerance of 60 s$/],
  ['a time that is none', ofSecret, { ...right, 'x-time': 'noon' }, /: a timestamp that is no time$/],
  ['another secret', ofSecret, signWith('another-secret-of-it'), another],
  [
    'another secret of a function',
    () => hmacSignature({ ...hmac, secrets: () => secret }),
    signWith('another-secret-of-it'),
    another,
  ],
  [
    'another key',
    publicKey,
    publicKeySignature({ header: 'x-sig', publicKeys: toPem(foreign) }).sign(body, { secret: toPrivatePem(foreign) }),
    another,
  ],
  ['another form of RFC 9421', message, { ...messageHeaders, signature: 'sig=x' }, /: not one signature of the form/],
  [
    'an uncovered component',
    () => messageSignature({ url, publicKeys: toPem(own), covered: ['x-id'] }),
    messageHeaders,
    /: not all of content-digest, x-id are covered$/,
  ],
  ['another digest', message, message().sign('other', { secret: toPrivatePem(own) }), /: another digest: /],
  [
    'another key of RFC 9421',
    () => messageSignature({ url, publicKeys: toPem(foreign) }),
    messageHeaders,
    /: another signature: another key/,
  ],
])('the log has the reason for %s, without a secret or a signature', async (_what, make, headers, reason) => {
  const { url: address, refuses, logged } = await startGuarded(plainServer, make());
  await refuses(address, { headers }, JSON.parse(body));
  expect(logged).toMatchObject([{ details: { refusedBy: expect.stringMatching(reason) as string } }]);
  const text = JSON.stringify(logged);
  for (const value of [secret, headers['x-sig'], headers.signature]) if (value) expect(text).not.toContain(value);
});

const missing: Readonly<Record<string, string>> = {
  hmacSignature: ': no header x-signature',
  publicKeySignature: ': no header x-signature',
  messageSignature: ': no header signature-input',
};

test.each([
  ...Object.entries(verifiers),
  ['hmacSignature', () => hmacSignature({ header: 'X-Signature', secrets: () => secret })] as const,
])('the log names %s when it has refused, and the header that is missing', async (name, make) => {
  const { url: address, refuses, logged } = await startGuarded(plainServer, make());
  await refuses(address);
  expect(logged).toMatchObject([{ details: { refusedBy: `verifier 1 of 1, ${name}${missing[name] ?? ''}` } }]);
});
