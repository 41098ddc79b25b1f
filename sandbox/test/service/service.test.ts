import { expect, test } from 'vitest';
import { transferCallbackSchema, type TransferCallback } from 'transfer-callbacks';
import { head, overSocket } from '../../../test/support/helpers/sockets.js';
import { freePort } from '../../../test/support/servers/port.js';
import { call, create, errorBody, headersOf, longEnoughMs, query, startMerchant, startSandbox } from './support.js';

// Compares the sandbox with the service's documentation, section by section. When it sends callbacks: scenarios.test.ts.

/** One transfer, announced to a merchant. */
async function announce(request: object) {
  const merchant = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { callbackUrl: merchant.url, ...request });
  await sandbox.advance(longEnoughMs);
  const callbacks = merchant.bodies().map((body) => JSON.parse(body) as TransferCallback);
  return { ...merchant, sandbox, callbacks, data: callbacks[0]?.data };
}

test('§2.1: a callback carries the 14 documented fields, in the documented types', async () => {
  const { callbacks, data } = await announce({ externalId: 'one', amount: 250.5, currency: 'USD' });
  expect(transferCallbackSchema.safeParse(callbacks[0]).success).toBe(true);
  expect(Object.keys(data ?? {}).sort()).toEqual([
    ...['amount', 'bankAccount', 'currency', 'externalId', 'externalReference', 'failureReason', 'id'],
    ...['paymentMethod', 'provider', 'reference', 'status', 'timestamp', 'vouchercode', 'walletNumber'],
  ]);
  const timestamp = '2026-01-15T10:30:01.000Z';
  expect(data).toMatchObject({ externalId: 'one', amount: 250.5, currency: 'USD', failureReason: null, timestamp });
});

test('§2.1: bankAccount is null for mobile_money, walletNumber for bank', async () => {
  const mobile = await announce({ walletNumber: '237699999999' });
  expect(mobile.data).toMatchObject({
    ...{ paymentMethod: 'mobile_money', walletNumber: '237699999999', bankAccount: null },
  });
  const bank = await announce({ paymentMethod: 'bank', bankAccount: { iban: 'CM21' } });
  expect(bank.data).toMatchObject({ paymentMethod: 'bank', walletNumber: null, bankAccount: { iban: 'CM21' } });
});

test('§2.2: a callback goes to the callbackUrl that its transfer was created with', async () => {
  const [first, second] = [await startMerchant(), await startMerchant()];
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: second.url });
  await create(sandbox, { callbackUrl: first.url });
  await sandbox.advance(longEnoughMs);
  expect([first.received.length, second.received.length]).toEqual([1, 0]);
});

test('§4.2: GET /transactions/… finds a transfer by its id and by its externalId', async () => {
  const { sandbox, data } = await announce({ externalId: 'payout/1 é' });
  for (const name of [String(data?.id), 'payout/1 é']) {
    expect(await query(sandbox, name)).toMatchObject({ status: 200, body: { data } });
  }
});

test('§4.3, §6.7: a callback is a POST of application/json with event and data, and carries no credentials', async () => {
  const { received, callbacks } = await announce({});
  expect(received[0]).toMatchObject({ method: 'POST', headers: { 'content-type': 'application/json' } });
  expect(Object.keys(received[0]?.headers ?? {}).sort()).toEqual([
    ...['connection', 'content-length', 'content-type', 'host'],
  ]);
  expect(Object.keys(callbacks[0] ?? {})).toEqual(['event', 'data']);
});

test('§5: both endpoints refuse every wrong key and secret, each with its own reason', async () => {
  const sandbox = await startSandbox();
  const { valid, expired, revoked, merchantInactive } = sandbox.keys;
  const faulty: [status: number, headers: object][] = [
    [404, { 'x-api-secret': valid.apiSecret }],
    [400, { 'x-api-key': 'nobody', 'x-api-secret': valid.apiSecret }],
    [400, { 'x-api-key': valid.apiKey }],
    [400, { 'x-api-key': valid.apiKey, 'x-api-secret': 'other' }],
    [400, { 'x-api-key': valid.apiKey, 'x-api-secret': expired.apiSecret }],
    [400, headersOf(revoked)],
    [400, headersOf(merchantInactive)],
    [400, headersOf(expired)],
    [404, {}],
  ];
  const messages = new Set<string>();
  for (const [status, fault] of faulty) {
    const headers = { 'Content-Type': 'application/json', ...fault };
    const creation = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers });
    expect([fault, creation]).toEqual([fault, { status, body: errorBody(status) }]);
    expect(await call(sandbox, '/transactions/some', { headers })).toEqual(creation);
    messages.add(creation.body.message);
  }
  expect(messages.size).toBe(7);
  expect(sandbox.transfers()).toEqual([]);
});

test('§6.3: an endpoint that is unreachable or drops the connection gets 4 attempts', async () => {
  const { url } = await startMerchant((_received, _count, response) => response.destroy());
  for (const callbackUrl of [`http://127.0.0.1:${await freePort()}/`, url]) {
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
    await create(sandbox, {});
    await sandbox.advance(longEnoughMs);
    expect(sandbox.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    for (const { response } of sandbox.attempts)
      expect(response).toMatchObject({ error: expect.any(String) as string });
  }
});

test('§6.5: if no callback arrives, a query shows the outcome, in the fields of a callback', async () => {
  const { sandbox, received } = await announce({ externalId: 'no-callback-1' });
  expect(received).toEqual([]);
  const { body } = await query(sandbox, 'no-callback-1');
  expect(transferCallbackSchema.parse({ event: 'transfer.success', data: body.data }).data).toEqual(body.data);
});

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

test('an invalid creation is refused with 400 and its reason, and creates nothing', async () => {
  const sandbox = await startSandbox();
  const wrong: [body: string, named: string][] = [
    ['{"amount":', 'JSON'],
    ['[]', 'object'],
    ['null', 'object'],
    [JSON.stringify({ reference: 'x'.repeat(110_000) }), 'longer'],
    ['{"callbackUrl":7}', '`callbackUrl`'],
    ['{"callbackUrl":"nowhere"}', '`callbackUrl`'],
    ['{"callbackUrl":"ftp://127.0.0.1/"}', '`callbackUrl`'],
    ['{"callbackUrl":"http://203.0.113.7/"}', '`callbackUrl`'],
    ['{"externalId":42}', '`externalId`'],
    ['{"externalId":""}', '`externalId`'],
    ['{"amount":"250"}', '`amount`'],
    ['{"amount":1e999}', '`amount`'],
    ['{"currency":950}', '`currency`'],
    ['{"reference":{}}', '`reference`'],
    ['{"provider":[]}', '`provider`'],
    ['{"paymentMethod":"cash"}', '`paymentMethod`'],
    ['{"walletNumber":237670000000}', '`walletNumber`'],
    ['{"paymentMethod":"bank","bankAccount":[]}', '`bankAccount`'],
    ['{"paymentMethod":"bank","walletNumber":"237670000000"}', '`walletNumber`'],
    ['{"bankAccount":{}}', '`bankAccount`'],
  ];
  for (const [body, named] of wrong) {
    const refused = await create(sandbox, body);
    expect([body, refused]).toEqual([body, { status: 400, body: errorBody(400) }]);
    expect(refused.body.message).toContain(named);
  }
  const headers = { ...headersOf(sandbox.keys.valid), 'Content-Type': 'text/plain' };
  const undeclared = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers });
  expect(undeclared).toEqual({ status: 400, body: errorBody(400) });
  expect(sandbox.transfers()).toEqual([]);
});

test('a second transfer with the same externalId is refused with 409, and the first one stays', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'twice', amount: 1 });
  expect(await create(sandbox, { externalId: 'twice', amount: 2 })).toEqual({ status: 409, body: errorBody(409) });
  expect((await query(sandbox, 'twice')).body.data?.amount).toBe(1);
});

test('a request that names no transfer gets the documented error body', async () => {
  const sandbox = await startSandbox();
  for (const [path, status, method] of [
    ['/transactions/a/b', 404, 'GET'],
    ['/elsewhere', 404, 'GET'],
    ['/transactions/unknown', 404, 'GET'],
    ['/transactions/%ff', 400, 'GET'],
    ['/transactions/a', 404, 'DELETE'],
  ] as const) {
    expect([path, await call(sandbox, path, { method })]).toEqual([path, { status, body: errorBody(status) }]);
  }
});

test('a callback URL may be at any name of this machine, and anywhere with allowOtherHosts', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  for (const callbackUrl of ['http://localhost/', 'http://127.9.9.9:81/', 'http://[::1]/', 'http://127.1/']) {
    expect((await create(sandbox, { callbackUrl })).status).toBe(201);
  }
  const open = await startSandbox({ clock: 'manual', allowOtherHosts: true });
  expect((await create(open, { callbackUrl: 'https://merchant.example/' })).status).toBe(201);
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
  const declared = { 'Content-Type': 'application/json', 'Content-Length': 99 };
  const url = `${sandbox.baseUrl}/transactions/transfer`;
  const sent = `${head(url, { ...headersOf(sandbox.keys.valid), ...declared })}{"amo`;
  await overSocket(sandbox.baseUrl, (socket) => socket.end(sent));
  expect(sandbox.transfers()).toEqual([]);
  expect((await query(sandbox, 'nothing')).status).toBe(404);
});
