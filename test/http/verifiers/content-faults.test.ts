// What is wrong with the content of a signed request is the same for each verifier of a signature. Here `sign` makes the
// right one: signing.test.ts compares it with what the standards say.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { hmacSignature, messageSignature, publicKeySignature, type SignatureVerifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { Sent } from '../../support/helpers/post.js';
import { roads } from '../../support/servers/http-servers.js';
import { startGuarded } from '../support.js';
import { keyPairs, toPem, toPrivatePem } from './keys.js';

afterEach(() => {
  vi.useRealTimers();
});

const content = { header: 'X-Signature', timestamp: 'X-Time', signed: '{x-id}.{timestamp}{body}', toleranceMs: 30_000 };
const url = 'https://merchant.example/callbacks';
const covered = ['@method', '@authority', '@path', 'x-id'];

/** The key that a verifier takes, and the secret that its sender signs with. */
const bySecret = {
  own: { key: 'first-secret-0123456789', secret: 'first-secret-0123456789' },
  foreign: { key: 'strangers-secret-0123456789', secret: 'strangers-secret-0123456789' },
};
const [own, foreign] = keyPairs.ed25519;
const byKeys = {
  own: { key: toPem(own), secret: toPrivatePem(own) },
  foreign: { key: toPem(foreign), secret: toPrivatePem(foreign) },
};

type Verify = Pick<SignatureVerifier, 'sign'> &
  ((...args: Parameters<SignatureVerifier>) => boolean | Promise<boolean>);

const verifiers: readonly [string, (key: string) => Verify, typeof byKeys][] = [
  ['hmacSignature', (secrets) => hmacSignature({ ...content, secrets }), bySecret],
  [
    'hmacSignature that finds its secret',
    (key) => hmacSignature({ ...content, secrets: () => Promise.resolve(key) }),
    bySecret,
  ],
  ['publicKeySignature', (publicKeys) => publicKeySignature({ ...content, publicKeys }), byKeys],
  ['messageSignature', (publicKeys) => messageSignature({ publicKeys, url, covered, toleranceMs: 30_000 }), byKeys],
];

const sentMs = 1_790_000_000_000;
const callback = transferSucceeded();
const body = JSON.stringify(callback);
type Headers = NonNullable<Sent['headers']>;

describe.each(verifiers)('%s', (_name, make, { own, foreign }) => {
  const sign = ({ key, secret } = own, text = body): Headers =>
    make(key).sign(text, { secret, headers: { 'X-Id': '7' } });

  test.each(roads)('refuses what is not signed as it came, on $name', async (road) => {
    vi.useFakeTimers({ toFake: ['Date'], now: sentMs });
    const { url, admits, refuses, thrown } = await startGuarded(road, make(own.key));
    const right = sign();
    const changed = (name: string, value: string | undefined) => ({ headers: { ...right, [name]: value } });
    const otherBodies = [`${body} `, body.slice(1), ` ${body}`, JSON.stringify(callback, undefined, 1), '', '{}'];
    for (const other of otherBodies) await refuses(url, { headers: right }, other);
    await refuses(url, {}, body);
    for (const [name, value] of Object.entries(right)) {
      const text = String(value);
      // In the middle: the last character of Base64 has bits that mean nothing.
      const at = Math.floor(text.length / 2);
      const other = text.slice(0, at) + (text.charAt(at) === '1' ? '2' : '1') + text.slice(at + 1);
      for (const each of [undefined, '', 'x', ',', other]) await refuses(url, changed(name, each), body);
    }
    await refuses(url, { headers: sign(foreign) }, body);
    expect(thrown()).toEqual([]);
    await admits(url, { headers: right }, callback);
  });

  test('refuses a time of sending beyond its tolerance', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: sentMs });
    const headers = Object.fromEntries(Object.entries(sign()).map(([name, value]) => [name, String(value)]));
    const acceptedAfter = async (ms: number): Promise<boolean> => {
      vi.setSystemTime(sentMs + ms);
      return make(own.key)({ method: 'POST', headers }, undefined, Buffer.from(body));
    };
    // RFC 9421 has an end of its own, which `sign` puts a minute after the beginning.
    const endMs = 'signature-input' in headers ? 60_000 : 30_000;
    for (const ms of [0, endMs, -30_000]) expect([ms, await acceptedAfter(ms)]).toEqual([ms, true]);
    for (const ms of [endMs + 1_000, -31_000]) expect([ms, await acceptedAfter(ms)]).toEqual([ms, false]);
  });

  test('refuses a request whose body was not read', async () => {
    const request = { method: 'POST', headers: sign(own, '') as Record<string, string> };
    const verify = make(own.key);
    expect(await verify(request, undefined, Buffer.alloc(0))).toBe(true);
    expect(await verify(request, undefined, undefined)).toBe(false);
  });
});
