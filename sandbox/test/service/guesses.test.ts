import { expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { head, overSocket } from '../../../test/support/helpers/sockets.js';
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
