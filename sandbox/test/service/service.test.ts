import { expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import type { TransferSandbox } from 'transfer-sandbox';
import { freePort } from '../../../test/support/servers/port.js';
import {
  announce,
  call,
  create,
  errorBody,
  headersOf,
  longEnoughMs,
  query,
  startMerchant,
  startSandbox,
} from './support.js';

// Compares the sandbox with the service's documentation, section by section. When it sends callbacks:
// scenarios.test.ts. Its guesses: guesses.test.ts.

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

const authenticationFaults: [section: string, status: number, of: (keys: TransferSandbox['keys']) => object][] = [
  ['§5.4', 404, ({ valid }) => ({ 'x-api-secret': valid.apiSecret })],
  ['§5.4', 400, ({ valid }) => ({ 'x-api-key': 'nobody', 'x-api-secret': valid.apiSecret })],
  ['§5.4', 400, ({ valid }) => ({ 'x-api-key': valid.apiKey })],
  ['§5.4', 400, ({ valid }) => ({ 'x-api-key': valid.apiKey, 'x-api-secret': 'other' })],
  ['§5.4', 400, ({ valid, expired }) => ({ 'x-api-key': valid.apiKey, 'x-api-secret': expired.apiSecret })],
  ['§5.4', 400, ({ revoked }) => headersOf(revoked)],
  ['§5.4', 400, ({ merchantInactive }) => headersOf(merchantInactive)],
  ['§5.4', 400, ({ expired }) => headersOf(expired)],
  ['§5.1', 404, () => ({})],
];

test('§5: both endpoints refuse every wrong key and secret, each with its own reason', async () => {
  const sandbox = await startSandbox();
  const messages = new Set<string>();
  for (const [section, status, faulty] of authenticationFaults) {
    const headers = { 'Content-Type': 'application/json', ...faulty(sandbox.keys) };
    const creation = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers });
    expect([section, creation]).toEqual([section, { status, body: errorBody(status) }]);
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
