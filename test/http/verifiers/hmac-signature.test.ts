import { createHmac } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { hmacSignature } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../../support/http-servers.js';
import { post } from '../../support/post.js';
import { start, startGuarded, unauthorized } from '../support.js';
import { recordingOptions } from '../../support/recording-options.js';

const secret = 'first-secret-0123456789';
const older = 'older-secret-0123456789';
const form =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar' +
  '&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com' +
  '%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d' +
  '10d2c447fce8b6703c';

/** What services sign, with an example of each. */
const schemes = [
  {
    name: 'GitHub, its documented example',
    options: { header: 'X-Hub-Signature-256', secrets: "It's a Secret to Everybody" },
    body: 'Hello, World!',
    headers: { 'X-Hub-Signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
    at: 0,
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
    body: '{"event":"transfer.success"}',
    headers: {
      'Stripe-Signature': 't=1614265330,v1=441be22783d5674457cc3fb856d1cabed70f0071ba212ab4cee37e384d7fcc9e',
    },
    at: 1_614_265_330_000,
  },
  {
    name: 'Paddle, a signature that OpenSSL made',
    options: {
      header: 'paddle-signature',
      secrets: 'pdl_ntfset_a_secret_of_a_test',
      signed: '{timestamp}:{body}',
      timestamp: 'ts=',
    },
    body: '{"event":"transfer.success"}',
    headers: {
      'Paddle-Signature': 'ts=1671552777;h1=3727f7e9aab0e9c12a2089285465d669226176051500f64e0c62f9fd4eae1fed',
    },
    at: 1_671_552_777_000,
  },
  {
    name: 'Paystack, a signature that OpenSSL made',
    options: { header: 'x-paystack-signature', secrets: 'sk_test_a_secret_of_a_test', algorithm: 'sha512' },
    body: '{"event":"transfer.success"}',
    headers: {
      'X-Paystack-Signature':
        '0546363b2ed53bb4eea4601e9028975f7711e54750e2ff078f4a6d547b8df65f' +
        'c50aba8096be37f3a9b880c8152ed7f1f16ceca1594896bb6de012fa8421d601',
    },
    at: 0,
  },
  {
    name: 'Shopify, a signature that OpenSSL made',
    options: { header: 'X-Shopify-Hmac-Sha256', secrets: 'shpss_a_secret_of_a_test', encoding: 'base64' },
    body: '{"event":"transfer.success"}',
    headers: { 'X-Shopify-Hmac-Sha256': 'EZ4+EFo0Obasiw1ezjNjZfXK+z//BfM7WEKFgVlhSto=' },
    at: 0,
  },
] as const;

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

describe.each(httpServers)('on $name', (server) => {
  test.each(schemes)('hmacSignature accepts $name, and no other bytes', async ({ options, body, headers, at }) => {
    setDate(at);
    const { url, refuses, logged } = await startGuarded(server, hmacSignature(options));
    // The sender is verified, and what it sends is no callback.
    expect((await post(url, body, { headers })).status).toBe(400);
    expect(logged).toMatchObject([{ details: { outcome: 'invalid', verified: true } }]);
    await refuses(url, { headers }, `${body} `);
    await refuses(url, { headers }, body.slice(1));
    await refuses(url, { headers }, '');
    for (const name of Object.keys(headers)) {
      await refuses(url, { headers: { ...headers, [name]: undefined } }, body);
      const value = (headers as Record<string, string>)[name] ?? '';
      const changed = value.replace(/.(?=.$)/, (last) => (last === '1' ? '2' : '1'));
      await refuses(url, { headers: { ...headers, [name]: changed } }, body);
    }
    await refuses(url, {}, body);
  });

  test('hmacSignature refuses a request whose body is not read', async () => {
    const { options, logged } = recordingOptions();
    const verify = hmacSignature({ header: 'X-Signature', secrets: secret });
    const { url } = await start(server, { ...options, verify, bodyLimitBytes: 1_000 });
    const headers = { 'X-Signature': sign('', secret) };
    expect((await post(url, body, { method: 'PUT', headers })).status).toBe(401);
    expect((await post(url, body, { headers: { ...headers, 'Content-Type': 'text/plain' } })).status).toBe(401);
    const long = ' '.repeat(1_001);
    expect((await post(url, long, { headers: { 'X-Signature': sign(long, secret) } })).body).toBe(unauthorized);
    // It is a verdict, and no failure of the verifier.
    expect(logged.filter(({ details }) => 'err' in details)).toEqual([]);
  });

  test('during a rotation each of several secrets and each of several signatures is compared', async () => {
    const verify = hmacSignature({ header: 'X-Signature', secrets: [secret, older] });
    const { url, refuses, admits } = await startGuarded(server, verify);
    const foreign = sign(body, 'a-foreign-secret-0123');
    const written: ((newer: string, old: string) => string)[] = [
      (newer) => newer,
      (_newer, old) => old,
      (newer) => newer.toUpperCase(),
      (_newer, old) => `t=1,v1=${foreign},v1=${old}`,
      (newer) => `v1,${foreign} v1,${newer}`,
    ];
    for (const write of written) {
      const one = transferSucceeded();
      const text = JSON.stringify(one);
      await admits(url, { headers: { 'X-Signature': write(sign(text, secret), sign(text, older)) } }, one);
    }
    const right = sign(body, secret);
    for (const value of [foreign, right.slice(1), `${right}0`, `0${right}`, 'x', '', ',', `${right.slice(0, -1)}g`]) {
      await refuses(url, { headers: { 'X-Signature': value } }, body);
    }
  });

  test.each([
    ['seconds', (ms: number) => String(ms / 1_000)],
    ['milliseconds', String],
  ])('a timestamp in %s is accepted within toleranceMs, and not beyond', async (_unit, write) => {
    const verify = hmacSignature({
      header: 'X-Signature',
      secrets: secret,
      signed: '{timestamp}{body}',
      timestamp: 'X-Time',
      toleranceMs: 60_000,
    });
    const { url, admits, refuses } = await startGuarded(server, verify);
    const sentMs = 1_790_000_000_000;
    const signed = (text: string, time = write(sentMs)) => ({
      headers: { 'X-Time': time, 'X-Signature': sign(time + text, secret) },
    });
    for (const lateMs of [0, 60_000, -60_000]) {
      setDate(sentMs + lateMs);
      const one = transferSucceeded();
      await admits(url, signed(JSON.stringify(one)), one);
    }
    for (const lateMs of [61_000, -61_000]) {
      setDate(sentMs + lateMs);
      await refuses(url, signed(body), body);
    }
    setDate(sentMs);
    const wrong = ['', 'now', '-1', '1e9', 'Infinity', '0x6ab', `${write(sentMs)}x`, `x${write(sentMs)}`];
    for (const time of wrong) await refuses(url, signed(body, time), body);
  });
});

test('hmacSignature checks what is signed in any order, with a secret in any encoding', () => {
  const verify = hmacSignature({
    header: 'x-sign',
    secrets: '00112233445566778899aabbccddeeff',
    secretEncoding: 'hex',
    algorithm: 'sha384',
    encoding: 'base64',
    signed: 'POST https://merchant.example/callbacks\n{x-id}\n{body}\n{x-id}',
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
