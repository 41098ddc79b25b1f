import { connect } from 'node:net';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import type { SandboxKeys } from 'transfer-callbacks/sandbox';
import { call, create, query, startMerchant, startSandbox } from './support.js';

const errorBody = (statusCode: number) => ({
  error: true,
  statusCode,
  message: expect.any(String) as string,
  data: null,
});

const refusals: [string, number, (keys: SandboxKeys) => Record<string, string>][] = [
  ['without x-api-key', 404, ({ valid }) => ({ 'x-api-secret': valid.apiSecret })],
  ['with an unknown x-api-key', 400, ({ valid }) => ({ 'x-api-key': 'nobody', 'x-api-secret': valid.apiSecret })],
  ['without x-api-secret', 400, ({ valid }) => ({ 'x-api-key': valid.apiKey })],
  ['with another secret', 400, ({ valid }) => ({ 'x-api-key': valid.apiKey, 'x-api-secret': 'other' })],
  ['with a revoked key', 400, ({ revoked }) => headersOf(revoked)],
  ['with an expired key', 400, ({ expired }) => headersOf(expired)],
  ['with the key of an inactive merchant', 400, ({ merchantInactive }) => headersOf(merchantInactive)],
];

function headersOf({ apiKey, apiSecret }: SandboxKeys['valid']): Record<string, string> {
  return { 'x-api-key': apiKey, 'x-api-secret': apiSecret };
}

test.each(refusals)('a call %s is refused with %i, on both paths', async (_how, status, headersFor) => {
  const sandbox = await startSandbox();
  const headers = { 'Content-Type': 'application/json', ...headersFor(sandbox.keys) };
  const creation = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers });
  expect(creation).toEqual({ status, body: errorBody(status) });
  expect(await call(sandbox, '/transactions/some', { headers })).toEqual({ status, body: errorBody(status) });
  expect(sandbox.transfers()).toEqual([]);
});

test('each refusal says its own reason', async () => {
  const sandbox = await startSandbox();
  const messages = new Set<string>();
  for (const [, , headersFor] of refusals) {
    const { body } = await call(sandbox, '/transactions/some', { headers: headersFor(sandbox.keys) });
    messages.add(body.message);
  }
  expect(messages.size).toBe(refusals.length);
});

test('a transfer is PENDING until it is final; then a query answers exactly what the callback carried', async () => {
  const sandbox = await startSandbox({ clock: 'manual', finalAfterMs: 5_000 });
  const { url, received } = await startMerchant();
  const request = {
    callbackUrl: url,
    externalId: 'payout/1',
    amount: 250.5,
    currency: 'USD',
    reference: 'R',
    provider: 'P',
  };
  const { status, body } = await create(sandbox, { ...request, walletNumber: '237699999999' });
  expect(status).toBe(201);
  expect(body).toMatchObject({ error: false, statusCode: 201 });
  expect(body.data).toMatchObject({
    ...{ externalId: 'payout/1', amount: 250.5, currency: 'USD', reference: 'R', provider: 'P' },
    ...{ status: 'PENDING', walletNumber: '237699999999', bankAccount: null, failureReason: null, timestamp: null },
  });
  const id = String(body.data?.id);
  await sandbox.advance(4_999);
  expect((await query(sandbox, id)).body.data).toEqual(body.data);
  expect(sandbox.transfers()).toMatchObject([{ id, state: 'pending', delivered: false, callback: undefined }]);

  await sandbox.advance(1);
  const callback = transferCallbackSchema.parse(JSON.parse(String(received[0]?.body)));
  expect(callback.data).toEqual({
    ...{ ...body.data, status: 'SUCCESS', timestamp: '2026-01-15T10:30:05.000Z' },
  });
  expect(received[0]?.headers['content-type']).toBe('application/json');
  expect(received[0]?.method).toBe('POST');
  for (const name of [id, 'payout/1']) {
    expect(await query(sandbox, name)).toMatchObject({ status: 200, body: { error: false, data: callback.data } });
  }
  expect(sandbox.transfers()).toEqual([
    { id, externalId: 'payout/1', scenario: 'success', state: 'SUCCESS', delivered: true, callback },
  ]);
});

test('a bank payout carries an account and no wallet, and the documented schema takes it', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const given = { iban: 'CM21' };
  await create(sandbox, { paymentMethod: 'bank', bankAccount: given });
  await create(sandbox, { paymentMethod: 'bank', bankAccount: [] });
  await create(sandbox, { amount: '7', externalId: 7, walletNumber: 7 });
  await sandbox.advance(1_000);
  const [first, second, third] = sandbox.transfers().map(({ callback }) => transferCallbackSchema.parse(callback).data);
  expect(first).toMatchObject({ paymentMethod: 'bank', walletNumber: null, bankAccount: given });
  expect(second?.bankAccount).toEqual({ accountNumber: expect.any(String) as string });
  expect(third).toMatchObject({ paymentMethod: 'mobile_money', amount: 15_000, bankAccount: null });
});

test('a transfer without a callback address becomes final and is announced to nobody', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, {});
  await sandbox.advance(300_000);
  expect(sandbox.attempts).toEqual([]);
  expect(sandbox.transfers()).toMatchObject([{ state: 'SUCCESS', delivered: false }]);
});

test('a second transfer with the same externalId is refused, and the first one stays', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'twice', amount: 1 });
  expect(await create(sandbox, { externalId: 'twice', amount: 2 })).toEqual({ status: 409, body: errorBody(409) });
  expect(sandbox.transfers()).toHaveLength(1);
});

test.each([
  ['no JSON', '{"amount":'],
  ['no object', '[]'],
  ['null', 'null'],
  ['too long', JSON.stringify({ reference: 'x'.repeat(110_000) })],
  ['with a callbackUrl that is no text', '{"callbackUrl":7}'],
  ['with a callbackUrl that is no URL', '{"callbackUrl":"nowhere"}'],
  ['with a callbackUrl that is not of HTTP', '{"callbackUrl":"ftp://127.0.0.1/"}'],
  ['with a callbackUrl elsewhere', '{"callbackUrl":"http://203.0.113.7/"}'],
  ['with a callbackUrl at a name that looks local', '{"callbackUrl":"http://127.0.0.1.example.com/"}'],
])('a creation that is %s is refused with 400', async (_what, body) => {
  const sandbox = await startSandbox();
  expect(await create(sandbox, body)).toEqual({ status: 400, body: errorBody(400) });
  expect(sandbox.transfers()).toEqual([]);
});

test('a creation that does not say it is JSON is refused with 400', async () => {
  const sandbox = await startSandbox();
  const headers = { ...headersOf(sandbox.keys.valid), 'Content-Type': 'text/plain' };
  const refused = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers });
  expect(refused).toEqual({ status: 400, body: errorBody(400) });
});

test.each(['http://localhost/', 'http://127.9.9.9:81/', 'http://[::1]/', 'http://127.1/'])(
  '%s is an address on this machine',
  async (callbackUrl) => {
    const sandbox = await startSandbox({ clock: 'manual' });
    expect((await create(sandbox, { callbackUrl })).status).toBe(201);
  },
);

test('allowOtherHosts lets a callback address be anywhere', async () => {
  const sandbox = await startSandbox({ clock: 'manual', allowOtherHosts: true });
  expect((await create(sandbox, { callbackUrl: 'https://merchant.example/' })).status).toBe(201);
});

test('what is not there is answered 404, and a path that cannot be read 400', async () => {
  const sandbox = await startSandbox();
  expect(await query(sandbox, 'nothing')).toEqual({ status: 404, body: errorBody(404) });
  for (const path of ['/', '/transactions/a/b', '/elsewhere']) {
    expect(await call(sandbox, path)).toEqual({ status: 404, body: errorBody(404) });
  }
  expect(await call(sandbox, '/transactions/a', { method: 'DELETE' })).toEqual({ status: 404, body: errorBody(404) });
  expect(await call(sandbox, '/transactions/%ff')).toEqual({ status: 400, body: errorBody(400) });
});

test('a merchant who hangs up in the middle of a creation creates nothing', async () => {
  const sandbox = await startSandbox();
  const { hostname, port } = new URL(sandbox.baseUrl);
  const { apiKey, apiSecret } = sandbox.keys.valid;
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  const head = [
    'POST /transactions/transfer HTTP/1.1',
    'Host: x',
    `x-api-key: ${apiKey}`,
    `x-api-secret: ${apiSecret}`,
  ];
  socket.end([...head, 'Content-Type: application/json', 'Content-Length: 99', '', '{"amo'].join('\r\n'));
  await once(socket.resume(), 'close');
  expect(sandbox.transfers()).toEqual([]);
  expect((await query(sandbox, 'nothing')).status).toBe(404);
});
