import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { hmacSignature } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../../support/helpers/containing.js';
import { roads } from '../../support/servers/http-servers.js';
import { startGuarded } from '../support.js';
import { schemes } from './schemes.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';
function setDate(atMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: atMs });
}
afterEach(() => {
  vi.useRealTimers();
});

function sign(body: string | Uint8Array, key: string, algorithm = 'sha256'): string {
  return createHmac(algorithm, key).update(body).digest('hex');
}

const callback = transferSucceeded();
// As `JSON.stringify` would never write it.
const body = JSON.stringify(callback, undefined, 1).replaceAll('/', '\\/');

const request = (headers: Readonly<Record<string, string>>) => ({
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
});

test.each(schemes)('hmacSignature accepts $name, and no other bytes', ({ options, body, headers, at }) => {
  setDate(at);
  const verify = hmacSignature(options);
  const accepts = (sent: Readonly<Record<string, string>>, text: string) =>
    verify(request(sent), undefined, Buffer.from(text));
  const others = Object.entries(headers).filter(([name]) => name === 'Webhook-Id');
  const own = verify.sign(Buffer.from(body), { headers: Object.fromEntries(others) });
  expect(verify.sign(body, { headers: Object.fromEntries(others) })).toEqual(own);
  for (const each of [headers, own]) {
    expect([accepts(each, body), accepts(each, `${body} `)]).toEqual([true, false]);
    for (const left of Object.keys(each)) {
      expect(accepts(Object.fromEntries(Object.entries(each).filter(([name]) => name !== left)), body)).toBe(false);
    }
  }
});

test('during a rotation each of several secrets and each of several signatures is compared', () => {
  const verify = hmacSignature({ header: 'X-Signature', secrets: [secret, older] });
  const accepts = (value: string) => verify({ headers: { 'x-signature': value } }, undefined, Buffer.from(body));
  const [newer, old, foreign] = [secret, older, 'a-foreign-secret-0123'].map((key) => sign(body, key)) as [
    string,
    string,
    string,
  ];
  for (const value of [
    ...[newer, old, newer.toUpperCase()],
    `t=1,v1=${foreign},v1=${old}`,
    `v1,${newer} v1,${foreign}`,
    // What is shorter or longer is no signature.
    `id=${foreign.slice(24)},${foreign}${foreign},v1=${newer}`,
  ]) {
    expect([value, accepts(value)]).toEqual([value, true]);
  }
  for (const value of [foreign, newer.slice(1), `${newer}0`, `0${newer}`, 'x', '', ',', `${newer.slice(0, -1)}g`]) {
    expect([value, accepts(value)]).toEqual([value, false]);
  }
});

test.each([
  ['seconds', (ms: number) => String(ms / 1_000)],
  ['milliseconds', String],
  ['ISO 8601', (ms: number) => new Date(ms).toISOString()],
  ['ISO 8601 with an offset', (ms: number) => new Date(ms + 7_200_000).toISOString().replace('.000Z', '+02:00')],
])('a timestamp in %s is accepted within toleranceMs, and not beyond', (_unit, write) => {
  const verify = hmacSignature({
    ...{ header: 'x-signature', secrets: secret, signed: '{timestamp}{body}' },
    ...{ timestamp: 'X-Time', toleranceMs: 60_000 },
  });
  const sentMs = 1_790_000_000_000;
  const acceptsAt = (atMs: number, time = write(sentMs)) => {
    setDate(atMs);
    const headers = { 'x-time': time, 'x-signature': sign(time + body, secret) };
    return verify({ headers }, undefined, Buffer.from(body));
  };
  for (const lateMs of [0, 60_000, -60_000]) expect([lateMs, acceptsAt(sentMs + lateMs)]).toEqual([lateMs, true]);
  for (const lateMs of [61_000, -61_000]) expect([lateMs, acceptsAt(sentMs + lateMs)]).toEqual([lateMs, false]);
  const local = new Date(sentMs).toISOString().slice(0, -1);
  const wrong = ['', 'now', '-1', '1e9', 'Infinity', '0x6ab', local, local.slice(0, 10)];
  for (const time of [...wrong, `${write(sentMs)}x`, `x${write(sentMs)}`]) {
    expect([time, acceptsAt(sentMs, time)]).toEqual([time, false]);
  }
});

describe.each(roads)('by the request on $name', (server) => {
  const tenants: Readonly<Record<string, string>> = { north: secret, south: older };
  const byTenant =
    (answer: (secret: string | undefined) => string | undefined | Promise<string | undefined>) =>
    ({ url = '' }: { readonly url?: string | undefined }) =>
      answer(tenants[new URL(url, 'http://localhost').searchParams.get('tenant') ?? '']);

  test.each([
    ['of', byTenant((found) => found)],
    ['that resolves with', byTenant((found) => Promise.resolve(found))],
  ])(
    'a function %s secrets has those of each tenant, and a request without any gets 401 and one log line',
    async (_, secrets) => {
      const verify = hmacSignature({ header: 'X-Signature', secrets });
      const { url, admits, refuses, logged, thrown } = await startGuarded(server, verify);
      const signed = (key: string, text = body) => ({ headers: verify.sign(text, { secret: key }) });
      for (const [tenant, key] of Object.entries(tenants)) {
        const one = transferSucceeded();
        await admits(`${url}?tenant=${tenant}`, signed(key, JSON.stringify(one)), one);
      }
      await refuses(`${url}?tenant=north`, signed(older), body);
      expect(thrown()).toEqual([]);
      const before = logged.length;
      await refuses(`${url}?tenant=west`, signed(secret), body);
      expect(logged.slice(before)).toMatchObject([
        { level: 'warn', details: { outcome: 'unauthorized', err: { code: 'INVALID_ARGUMENT' } } },
      ]);
      expect(thrown()).toMatchObject([{ message: containing('`secrets` has no secret for this request') }]);
      // Without a signature no secret is looked for.
      await refuses(`${url}?tenant=west`, {}, body);
      expect(thrown()).toHaveLength(1);
    },
  );

  test.each([
    [
      'throws',
      byTenant(() => {
        throw new Error('The table of tenants is gone.');
      }),
    ],
    ['rejects', byTenant(() => Promise.reject(new Error('The table of tenants is gone.')))],
    ['returns a weak secret', byTenant(() => 'hunter2')],
  ])('a sender is refused if the function of the secrets %s, and no secret is logged', async (_, secrets) => {
    const { url, refuses, logged, thrown } = await startGuarded(
      server,
      hmacSignature({ header: 'X-Signature', secrets }),
    );
    await refuses(url, { headers: { 'X-Signature': sign(body, 'hunter2') } }, body);
    expect(thrown()).toHaveLength(1);
    expect(JSON.stringify([logged, String(thrown()[0])])).not.toContain('hunter2');
  });
});

test('during a rotation each secret is compared that a function returns, in its encoding', async () => {
  const [newer = '', old = '', foreign] = ['00', '11', '22'].map((byte) => byte.repeat(16));
  for (const secrets of [() => [newer, undefined, old], () => Promise.resolve([newer, old])]) {
    const verify = hmacSignature({ header: 'x-sign', secrets, secretEncoding: 'hex' });
    const accepts = (key = '') =>
      verify({ headers: verify.sign('the body', { secret: key }) }, undefined, Buffer.from('the body'));
    expect(await Promise.all([newer, old, foreign].map(accepts))).toEqual([true, true, false]);
  }
});

test('sign takes the newest secret or another one, and an old timestamp to be refused', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: [secret, older], timestamp: 'X-Time' });
  const key = (given?: string) => verify.sign('the body', { secret: given, headers: { 'x-time': '1790000000' } });
  expect(key()).toEqual({ 'x-time': '1790000000', 'x-sign': sign('1790000000.the body', secret) });
  expect(key(older)['x-sign']).toBe(sign('1790000000.the body', older));
  const accepts = (headers: Record<string, string>) => verify({ headers }, undefined, Buffer.from('the body'));
  expect(accepts(key())).toBe(false);
  expect(accepts(verify.sign('the body', { headers: { 'X-Time': new Date().toISOString() } }))).toBe(true);
  expect(accepts(verify.sign('the body', { secret: 'a-foreign-secret-0123' }))).toBe(false);
});

test('a timestamp in ISO 8601 may stand in the header of the signature', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: secret, timestamp: 't=' });
  for (const time of ['2026-09-21T14:13:20Z', '2026-09-21T14:13:20.250+00:00']) {
    setDate(Date.parse(time));
    const headers = { 'x-sign': `t=${time},v1=${sign(`${time}.the body`, secret)}` };
    expect(verify({ headers }, undefined, Buffer.from('the body'))).toBe(true);
    setDate(Date.parse(time) + 301_000);
    expect(verify({ headers }, undefined, Buffer.from('the body'))).toBe(false);
  }
});

test('a timestamp in the header of the signature is known by its whole name', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: secret, timestamp: 't=' });
  const time = '1790000000';
  setDate(Number(time) * 1_000);
  const v1 = sign(`${time}.the body`, secret);
  for (const value of [`sent=1,t=${time},v1=${v1}`, `sent=1; t=${time} v1=${v1}`, `v1=${v1},t=${time}`]) {
    expect(verify({ headers: { 'x-sign': value } }, undefined, Buffer.from('the body'))).toBe(true);
  }
  expect(verify({ headers: { 'x-sign': `sent=${time},v1=${v1}` } }, undefined, Buffer.from('the body'))).toBe(false);
});

test('hmacSignature checks what is signed in any order, with a secret in any encoding', () => {
  const verify = hmacSignature({
    header: 'x-sign',
    secrets: '00112233445566778899aabbccddeeff',
    secretEncoding: 'hex',
    algorithm: 'sha384',
    encoding: 'base64',
    signed: 'POST https://merchant.example/callbacks\n{X-Id}\n{body}\n{x-id}',
  });
  const key = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
  const text = 'POST https://merchant.example/callbacks\n7\nthe body\n7';
  for (const encoding of ['base64', 'base64url'] as const) {
    const headers = { 'x-id': '7', 'x-sign': createHmac('sha384', key).update(text).digest(encoding) };
    expect(verify({ headers }, undefined, Buffer.from('the body'))).toBe(true);
    expect(verify({ headers: { ...headers, 'x-id': '8' } }, undefined, Buffer.from('the body'))).toBe(false);
  }
});

test('a timestamp of up to eleven digits is in seconds, and a longer one in milliseconds', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: secret, timestamp: 'x-time' });
  const times = [
    ['99999999999', 99_999_999_999_000],
    ['100000000000', 100_000_000_000],
    // It is signed as it was sent.
    ['01790000000', 1_790_000_000_000],
  ] as const;
  for (const [time, sentMs] of times) {
    setDate(sentMs);
    const headers = { 'x-time': time, 'x-sign': sign(`${time}.the body`, secret) };
    expect(verify({ headers }, undefined, Buffer.from('the body'))).toBe(true);
  }
});

test('whsec_ is left out at the beginning of a secret in Base64, and is a part of it elsewhere', () => {
  const text = 'MfKQ9whsec_r8GKYqrTwjUPD8ILPZIo2';
  const verify = hmacSignature({ header: 'x-sign', secrets: text, secretEncoding: 'base64' });
  const headers = { 'x-sign': createHmac('sha256', Buffer.from(text, 'base64')).update('the body').digest('hex') };
  expect(verify({ headers }, undefined, Buffer.from('the body'))).toBe(true);
});
