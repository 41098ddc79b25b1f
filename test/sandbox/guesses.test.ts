import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { call, create, errorBody, headersOf, query, startMerchant, startSandbox } from './support.js';

// What the sandbox guesses where the service's documentation shows nothing.

test('a transfer is PENDING until it is final, with a null timestamp', async () => {
  const sandbox = await startSandbox({ clock: 'manual', finalAfterMs: 5_000 });
  const { url } = await startMerchant();
  const given = { externalId: 'payout/1', amount: 250.5, currency: 'USD', reference: 'R', provider: 'P' };
  const { status, body } = await create(sandbox, { callbackUrl: url, ...given });
  expect([status, body]).toMatchObject([201, { error: false, statusCode: 201 }]);
  const pending = { status: 'PENDING', bankAccount: null, failureReason: null, timestamp: null };
  expect(body.data).toMatchObject({ ...given, ...pending });
  await sandbox.advance(4_999);
  const id = String(body.data?.id);
  expect((await query(sandbox, id)).body.data).toEqual(body.data);
  const known = { id, externalId: 'payout/1', scenario: 'success', callbackUrl: url };
  const createdAtMs = Date.parse('2026-01-15T10:30:00.000Z');
  expect(sandbox.transfers()).toMatchObject([
    { ...known, createdAtMs, state: 'pending', finalAtMs: undefined, delivered: false, callback: undefined },
  ]);

  await sandbox.advance(1);
  const data = { ...body.data, status: 'SUCCESS', timestamp: '2026-01-15T10:30:05.000Z' };
  expect((await query(sandbox, id)).body.data).toEqual(data);
  const callback = { event: 'transfer.success', data };
  expect(sandbox.transfers()).toMatchObject([
    { ...known, createdAtMs, state: 'SUCCESS', finalAtMs: createdAtMs + 5_000, delivered: true, callback },
  ]);
});

test('the sandbox makes up the missing fields of a creation, so that the documented schema accepts the callback', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { paymentMethod: 'bank', walletNumber: null });
  await create(sandbox, { bankAccount: null });
  await sandbox.advance(1_000);
  const [bank, mobile] = sandbox.transfers().map(({ callback }) => transferCallbackSchema.parse(callback).data);
  expect(bank).toMatchObject({ paymentMethod: 'bank', bankAccount: { accountNumber: expect.any(String) as string } });
  expect(mobile).toMatchObject({ paymentMethod: 'mobile_money', amount: 15_000, currency: 'XAF' });
});

test('a field that the sandbox does not know is ignored: the fields of a creation are not documented', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  expect((await create(sandbox, { externalId: 'one', beneficiaryName: 7 })).status).toBe(201);
});

describe('invalid creations', () => {
  test.each([
    ['a body that is not JSON', '{"amount":', 'JSON'],
    ['a list as its body', '[]', 'object'],
    ['null as its body', 'null', 'object'],
    ['a body that is too long', JSON.stringify({ reference: 'x'.repeat(110_000) }), 'longer'],
    ['a callbackUrl that is not a string', '{"callbackUrl":7}', '`callbackUrl`'],
    ['a callbackUrl that is not a URL', '{"callbackUrl":"nowhere"}', '`callbackUrl`'],
    ['a callbackUrl that is not of HTTP', '{"callbackUrl":"ftp://127.0.0.1/"}', '`callbackUrl`'],
    ['a callbackUrl on another host', '{"callbackUrl":"http://203.0.113.7/"}', '`callbackUrl`'],
    ['a callbackUrl at a name that looks local', '{"callbackUrl":"http://127.0.0.1.example.com/"}', '`callbackUrl`'],
    ['a number for externalId', '{"externalId":42}', '`externalId`'],
    ['an empty externalId', '{"externalId":""}', '`externalId`'],
    ['null for externalId', '{"externalId":null}', '`externalId`'],
    ['a string for amount', '{"amount":"250"}', '`amount`'],
    ['an amount that no number holds', '{"amount":1e999}', '`amount`'],
    ['a number for currency', '{"currency":950}', '`currency`'],
    ['an object for reference', '{"reference":{}}', '`reference`'],
    ['a list for provider', '{"provider":[]}', '`provider`'],
    ['an unknown paymentMethod', '{"paymentMethod":"cash"}', '`paymentMethod`'],
    ['a number for walletNumber', '{"walletNumber":237670000000}', '`walletNumber`'],
    ['a list for bankAccount', '{"paymentMethod":"bank","bankAccount":[]}', '`bankAccount`'],
    ['a walletNumber for a bank payout', '{"paymentMethod":"bank","walletNumber":"237670000000"}', '`walletNumber`'],
    ['a bankAccount without paymentMethod', '{"bankAccount":{}}', '`bankAccount`'],
  ])('a creation with %s is refused with 400 and creates nothing', async (_what, body, named) => {
    const sandbox = await startSandbox();
    const refused = await create(sandbox, body);
    expect(refused).toEqual({ status: 400, body: errorBody(400) });
    expect(refused.body.message).toContain(named);
    expect(sandbox.transfers()).toEqual([]);
  });
});

test('a creation that is not declared as JSON is refused with 400', async () => {
  const sandbox = await startSandbox();
  const headers = { ...headersOf(sandbox.keys.valid), 'Content-Type': 'text/plain' };
  const refused = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers });
  expect(refused).toEqual({ status: 400, body: errorBody(400) });
});

test('a second transfer with the same externalId is refused with 409, and the first one stays', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'twice', amount: 1 });
  expect(await create(sandbox, { externalId: 'twice', amount: 2 })).toEqual({ status: 409, body: errorBody(409) });
  expect((await query(sandbox, 'twice')).body.data?.amount).toBe(1);
});

test('each refusal of a key gives its own reason', async () => {
  const sandbox = await startSandbox();
  const { valid, revoked, expired, merchantInactive } = sandbox.keys;
  const all = [
    ...[{}, { 'x-api-key': 'nobody' }, { 'x-api-key': valid.apiKey }, { ...headersOf(valid), 'x-api-secret': 'other' }],
    ...[revoked, expired, merchantInactive].map(headersOf),
  ] as Record<string, string>[];
  const messages = new Set<string>();
  for (const headers of all) messages.add((await call(sandbox, '/transactions/some', { headers })).body.message);
  expect(messages.size).toBe(7);
});

test.each([
  ['/', 404],
  ['/transactions/a/b', 404],
  ['/elsewhere', 404],
  ['/transactions/unknown', 404],
  ['/transactions/%ff', 400],
])('GET %s responds %i', async (path, status) => {
  expect((await call(await startSandbox(), path)).status).toBe(status);
});

test.each(['http://localhost/', 'http://127.9.9.9:81/', 'http://[::1]/', 'http://127.1/'])(
  '%s is an address on this machine',
  async (callbackUrl) => {
    const sandbox = await startSandbox({ clock: 'manual' });
    expect((await create(sandbox, { callbackUrl })).status).toBe(201);
  },
);

test('with allowOtherHosts a callback URL may be anywhere', async () => {
  const sandbox = await startSandbox({ clock: 'manual', allowOtherHosts: true });
  expect((await create(sandbox, { callbackUrl: 'https://merchant.example/' })).status).toBe(201);
});

test('a transfer without a callback URL becomes final and is not announced', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, {});
  await sandbox.advance(300_000);
  expect(sandbox.attempts).toEqual([]);
  expect(sandbox.transfers()).toMatchObject([{ state: 'SUCCESS', delivered: false, callbackUrl: undefined }]);
});

test('a creation creates nothing if the merchant disconnects in the middle', async () => {
  const sandbox = await startSandbox();
  const { hostname, port } = new URL(sandbox.baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const head = [
    'POST /transactions/transfer HTTP/1.1',
    'Host: x',
    ...Object.entries(headersOf(sandbox.keys.valid)).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.end([...head, 'Content-Type: application/json', 'Content-Length: 99', '', '{"amo'].join('\r\n'));
  await once(socket.resume(), 'close');
  expect(sandbox.transfers()).toEqual([]);
  expect((await query(sandbox, 'nothing')).status).toBe(404);
});
