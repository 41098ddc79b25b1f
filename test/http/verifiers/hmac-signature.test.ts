import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { hmacSignature } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { HmacSignatureOptions } from '../../../src/http/verifiers/hmac-signature.js';
import { containing } from '../../support/helpers/containing.js';
import { roads } from '../../support/servers/http-servers.js';
import { startGuarded } from '../support.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';
const setDate = (atMs: number) => vi.useFakeTimers({ toFake: ['Date'], now: atMs });
afterEach(() => {
  vi.useRealTimers();
});

function sign(body: string | Uint8Array, key: string, algorithm = 'sha256'): string {
  return createHmac(algorithm, key).update(body).digest('hex');
}

const callback = transferSucceeded();
// As `JSON.stringify` would never write it.
const body = JSON.stringify(callback, undefined, 1).replaceAll('/', '\\/');

type Headers = Readonly<Record<string, string>>;

/** What a verifier returns for a body with these headers. */
function accept<Verdict>(
  verify: (request: { headers: Headers }, callback: undefined, body: Buffer) => Verdict,
  headers: Headers,
  text = 'the body',
): Verdict {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return verify({ headers: Object.fromEntries(lower) as Headers }, undefined, Buffer.from(text));
}

const form =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
  '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
  '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d' +
  '10d2c447fce8b6703c';

const anEvent = '{"event":"transfer.success"}';

/** What services sign, with an example of each. */
const schemes: {
  readonly name: string;
  readonly options: HmacSignatureOptions;
  readonly headers: Headers;
  readonly body?: string;
  readonly at?: number;
}[] = [
  {
    name: 'GitHub, its documented example',
    options: { header: 'X-Hub-Signature-256', secrets: "It's a Secret to Everybody" },
    body: 'Hello, World!',
    headers: { 'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
  },
  {
    name: 'Standard Webhooks, the example of its libraries',
    options: {
      header: 'webhook-signature',
      secrets: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      secretEncoding: 'base64',
      encoding: 'base64',
      signed: '{webhook-id}.{timestamp}.{body}',
      timestamp: 'webhook-timestamp',
    },
    body: '{"test": 2432232314}',
    headers: {
      'Webhook-Id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'Webhook-Timestamp': '1614265330',
      'Webhook-Signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    at: 1_614_265_330_000,
  },
  {
    name: 'Slack, its documented example',
    options: {
      header: 'x-slack-signature',
      secrets: '8f742231b10e8888abcd99yyyzzz85a5',
      signed: 'v0:{timestamp}:{body}',
      timestamp: 'x-slack-request-timestamp',
    },
    body: form,
    headers: {
      'X-Slack-Request-Timestamp': '1531420618',
      'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    at: 1_531_420_618_000,
  },
  {
    name: 'Stripe, a header that its library made',
    options: {
      header: 'stripe-signature',
      secrets: 'whsec_a_secret_of_a_test',
      timestamp: 't=',
    },
    headers: {
      'Stripe-Signature': 't=1614265330,v1=441be22783d5674457cc3fb856d1cabed70f0071ba212ab4cee37e384d7fcc9e',
    },
    at: 1_614_265_330_000,
  },
  {
    name: 'Paystack, a signature that OpenSSL made',
    options: { header: 'x-paystack-signature', secrets: 'sk_test_a_secret_of_a_test', algorithm: 'sha512' },
    headers: {
      'X-Paystack-Signature':
        '0546363b2ed53bb4eea4601e9028975f7711e54750e2ff078f4a6d547b8df65f' +
        'c50aba8096be37f3a9b880c8152ed7f1f16ceca1594896bb6de012fa8421d601',
    },
  },
  {
    name: 'Shopify, a signature that OpenSSL made',
    options: { header: 'X-Shopify-Hmac-Sha256', secrets: 'shpss_a_secret_of_a_test', encoding: 'base64' },
    headers: { 'X-Shopify-Hmac-Sha256': 'EZ4+EFo0Obasiw1ezjNjZfXK+z//BfM7WEKFgVlhSto=' },
  },
  {
    name: 'Square, a signature that OpenSSL made',
    options: {
      header: 'x-square-hmacsha256-signature',
      secrets: 'a_square_signature_key_of_a_test',
      encoding: 'base64',
      signed: 'https://merchant.example/callbacks/square{body}',
    },
    headers: { 'X-Square-HmacSha256-Signature': 'SWT8qffvUv/8Zrfl5cvuUSWZFFP90xnQ+sfvxZZezI8=' },
  },
  {
    name: 'HubSpot, a signature that OpenSSL made',
    options: {
      header: 'x-hubspot-signature-v3',
      secrets: 'hubspot-client-secret-of-a-test',
      encoding: 'base64',
      timestamp: 'x-hubspot-request-timestamp',
      signed: 'POSThttps://merchant.example/callbacks/hubspot{body}{timestamp}',
    },
    headers: {
      'X-HubSpot-Request-Timestamp': '1671552777000',
      'X-HubSpot-Signature-v3': 'xyileIYAQ3lX2kEdTBm6R28Wh2jEd6m82iJsXBTsJgk=',
    },
    at: 1_671_552_777_000,
  },
];

test.each(schemes)(
  'hmacSignature accepts $name, and no other bytes',
  ({ options, body = anEvent, headers, at = 0 }) => {
    setDate(at);
    const verify = hmacSignature(options);
    const others = Object.entries(headers).filter(([name]) => name === 'Webhook-Id');
    const own = verify.sign(Buffer.from(body), { headers: Object.fromEntries(others) });
    expect(verify.sign(body, { headers: Object.fromEntries(others) })).toEqual(own);
    for (const each of [headers, own]) {
      expect([accept(verify, each, body), accept(verify, each, `${body} `)]).toEqual([true, false]);
      for (const left of Object.keys(each)) {
        const rest = Object.entries(each).filter(([name]) => name !== left);
        expect(accept(verify, Object.fromEntries(rest), body)).toBe(false);
      }
    }
  },
);

test('during a rotation each of several secrets and each of several signatures is compared', () => {
  const verify = hmacSignature({ header: 'X-Signature', secrets: [secret, older] });
  const accepts = (value: string) => accept(verify, { 'x-signature': value }, body);
  const [newer = '', old = '', foreign = ''] = [secret, older, 'a-foreign-secret-0123'].map((key) => sign(body, key));
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
    return accept(verify, { 'x-time': time, 'x-signature': sign(time + body, secret) }, body);
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
    ['throws', byTenant(() => expect.fail('The table of tenants is gone.'))],
    ['rejects', byTenant(() => Promise.reject(new Error('The table of tenants is gone.')))],
    ['returns a weak secret', byTenant(() => 'hunter2')],
  ])('a sender is refused if the function of the secrets %s, and no secret is logged', async (_, secrets) => {
    const verify = hmacSignature({ header: 'X-Signature', secrets });
    const { url, refuses, logged, thrown } = await startGuarded(server, verify);
    await refuses(url, { headers: { 'X-Signature': sign(body, 'hunter2') } }, body);
    expect(thrown()).toHaveLength(1);
    expect(JSON.stringify([logged, String(thrown()[0])])).not.toContain('hunter2');
  });
});

test('during a rotation each secret is compared that a function returns, in its encoding', async () => {
  const [newer = '', old = '', foreign] = ['00', '11', '22'].map((byte) => byte.repeat(16));
  for (const secrets of [() => [newer, undefined, old], () => Promise.resolve([newer, old])]) {
    const verify = hmacSignature({ header: 'x-sign', secrets, secretEncoding: 'hex' });
    const accepts = (key = '') => accept(verify, verify.sign('the body', { secret: key }));
    expect(await Promise.all([newer, old, foreign].map(accepts))).toEqual([true, true, false]);
  }
});

test('sign takes the newest secret or another one, and an old timestamp to be refused', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: [secret, older], timestamp: 'X-Time' });
  const key = (given?: string) => verify.sign('the body', { secret: given, headers: { 'x-time': '1790000000' } });
  expect(key()).toEqual({ 'x-time': '1790000000', 'x-sign': sign('1790000000.the body', secret) });
  expect(key(older)['x-sign']).toBe(sign('1790000000.the body', older));
  expect(accept(verify, key())).toBe(false);
  expect(accept(verify, verify.sign('the body', { headers: { 'X-Time': new Date().toISOString() } }))).toBe(true);
  expect(accept(verify, verify.sign('the body', { secret: 'a-foreign-secret-0123' }))).toBe(false);
});

test('a timestamp may stand in the header of the signature, and is known there by its whole name', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: secret, timestamp: 't=' });
  for (const time of ['1790000000', '2026-09-21T14:13:20Z', '2026-09-21T14:13:20.250+00:00']) {
    const v1 = sign(`${time}.the body`, secret);
    const accepts = (value: string) => accept(verify, { 'x-sign': value });
    setDate(1_790_000_000_000);
    const right = [
      `t=${time},v1=${v1}`,
      `sent=1,t=${time},v1=${v1}`,
      `sent=1; t=${time} v1=${v1}`,
      `v1=${v1},t=${time}`,
    ];
    for (const value of right) expect([value, accepts(value)]).toEqual([value, true]);
    expect(accepts(`sent=${time},v1=${v1}`)).toBe(false);
    setDate(1_790_000_301_000);
    for (const value of right) expect([value, accepts(value)]).toEqual([value, false]);
  }
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
    expect(accept(verify, headers)).toBe(true);
    expect(accept(verify, { ...headers, 'x-id': '8' })).toBe(false);
  }
});

test('a timestamp of up to eleven digits is in seconds, and a longer one in milliseconds', () => {
  const verify = hmacSignature({ header: 'x-sign', secrets: secret, timestamp: 'x-time' });
  for (const [time, sentMs] of [
    ['99999999999', 99_999_999_999_000],
    ['100000000000', 100_000_000_000],
    // It is signed as it was sent.
    ['01790000000', 1_790_000_000_000],
  ] as const) {
    setDate(sentMs);
    expect(accept(verify, { 'x-time': time, 'x-sign': sign(`${time}.the body`, secret) })).toBe(true);
  }
});

test('whsec_ is left out at the beginning of a secret in Base64, and is a part of it elsewhere', () => {
  const text = 'MfKQ9whsec_r8GKYqrTwjUPD8ILPZIo2';
  const verify = hmacSignature({ header: 'x-sign', secrets: text, secretEncoding: 'base64' });
  const headers = { 'x-sign': createHmac('sha256', Buffer.from(text, 'base64')).update('the body').digest('hex') };
  expect(accept(verify, headers)).toBe(true);
});
