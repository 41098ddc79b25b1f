import { describe, expect, test } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import type { TransferSandbox } from 'transfer-callbacks/sandbox';
import {
  announce,
  call,
  course,
  create,
  errorBody,
  headersOf,
  longEnoughMs,
  query,
  startMerchant,
  startSandbox,
} from './support.js';

// Compares the sandbox with the service's documentation, section by section. Section 6, when and how it sends
// callbacks: service-events.test.ts. Its guesses: guesses.test.ts.

const isoUtcWithMs = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

describe('service §2.1, the transaction', () => {
  test('§2.1: a callback carries the 14 documented fields, in the documented types', async () => {
    const { callbacks, data } = await announce({ externalId: 'one', amount: 250.5, currency: 'USD' });
    expect(transferCallbackSchema.safeParse(callbacks[0]).success).toBe(true);
    expect(Object.keys(data ?? {}).sort()).toEqual([
      ...['amount', 'bankAccount', 'currency', 'externalId', 'externalReference', 'failureReason', 'id'],
      ...['paymentMethod', 'provider', 'reference', 'status', 'timestamp', 'vouchercode', 'walletNumber'],
    ]);
    expect(data).toMatchObject({ externalId: 'one', amount: 250.5, currency: 'USD' });
  });

  test('§2.1: bankAccount is null for mobile_money, walletNumber for bank', async () => {
    const mobile = await announce({ walletNumber: '237699999999' });
    expect(mobile.data).toMatchObject({
      ...{ paymentMethod: 'mobile_money', walletNumber: '237699999999', bankAccount: null },
    });
    const bank = await announce({ paymentMethod: 'bank', bankAccount: { iban: 'CM21' } });
    expect(bank.data).toMatchObject({ paymentMethod: 'bank', walletNumber: null, bankAccount: { iban: 'CM21' } });
  });

  test('§2.1: failureReason is text for a failed transfer and null for a successful one', async () => {
    expect((await announce({ externalId: 'failed-1' })).data?.failureReason).toEqual(expect.any(String));
    expect((await announce({ externalId: 'success-1' })).data?.failureReason).toBeNull();
  });

  test('§2.1: timestamp is the moment of the final status in UTC, on every attempt', async () => {
    const { callbacks, sandbox } = await announce({}, [500, 500]);
    const timestamps = new Set(callbacks.map(({ data }) => data.timestamp));
    expect([...timestamps]).toEqual(['2026-01-15T10:30:01.000Z']);
    expect([...timestamps][0]).toMatch(isoUtcWithMs);
    expect(sandbox.transfers()[0]?.finalAtMs).toBe(Date.parse('2026-01-15T10:30:01.000Z'));
  });

  test('§2.1: every transfer has a unique id', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    for (let count = 0; count < 50; count += 1) await create(sandbox, {});
    expect(new Set(sandbox.transfers().map(({ id }) => id)).size).toBe(50);
  });
});

test('service §2.2: a callback goes to the callbackUrl that its transfer was created with', async () => {
  const [first, second] = [await startMerchant(), await startMerchant()];
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: second.url });
  await create(sandbox, { callbackUrl: first.url });
  await sandbox.advance(longEnoughMs);
  expect([first.received.length, second.received.length]).toEqual([1, 0]);
});

test('service §2.3: every refusal has the documented error body', async () => {
  const sandbox = await startSandbox();
  const refused = [
    await call(sandbox, '/elsewhere'),
    await call(sandbox, '/transactions/a', { method: 'DELETE' }),
    await query(sandbox, 'unknown'),
    await call(sandbox, '/transactions/%ff'),
    await create(sandbox, '{"amount":'),
    await create(sandbox, { externalId: 7 }),
    await call(sandbox, '/transactions/some', { headers: {} }),
  ];
  for (const { status, body } of refused) expect(body).toEqual(errorBody(status));
});

describe('service §3, states', () => {
  test('§3.1: a transfer that becomes final is announced once, with SUCCESS or FAILED', async () => {
    for (const [externalId, status] of [
      ['success-1', 'SUCCESS'],
      ['failed-1', 'FAILED'],
    ]) {
      const { callbacks } = await announce({ externalId });
      expect(callbacks.map(({ data }) => data.status)).toEqual([status]);
    }
  });

  test('§3.2: nothing is announced after that, and a query keeps its status', async () => {
    const { sandbox, received, data } = await announce({ externalId: 'failed-1' });
    await sandbox.advance(100 * longEnoughMs);
    expect(received).toHaveLength(1);
    expect((await query(sandbox, 'failed-1')).body.data).toEqual(data);
  });
});

describe('service §4, endpoints', () => {
  test('§4.1: POST /transactions/transfer creates a transfer', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const { status, body } = await create(sandbox, { externalId: 'one' });
    expect([status, body.data?.externalId]).toEqual([201, 'one']);
    expect(sandbox.transfers()).toMatchObject([{ externalId: 'one', state: 'pending' }]);
  });

  test('§4.2: GET /transactions/… finds a transfer by its id and by its externalId', async () => {
    const { sandbox, data } = await announce({ externalId: 'payout/1 é' });
    for (const name of [String(data?.id), 'payout/1 é']) {
      expect(await query(sandbox, name)).toMatchObject({ status: 200, body: { data } });
    }
  });

  test('§4.3: a callback is a POST of application/json with event and data', async () => {
    const { received, callbacks } = await announce({});
    expect(received[0]?.method).toBe('POST');
    expect(received[0]?.headers['content-type']).toBe('application/json');
    expect(Object.keys(callbacks[0] ?? {})).toEqual(['event', 'data']);
  });

  test.each([200, 201, 202, 204, 299])('§4.3: %i acknowledges a callback', async (status) => {
    const { sandbox, received } = await announce({}, [status]);
    expect(received).toHaveLength(1);
    expect(sandbox.transfers()).toMatchObject([{ delivered: true, next: undefined }]);
  });

  test.each([300, 301, 302, 304, 400, 404, 409, 410, 422, 500, 503])(
    '§4.3: %i does not acknowledge a callback',
    async (status) => {
      const { sandbox } = await announce({}, [status]);
      expect(course(sandbox)).toEqual([
        [0, 1, status],
        [30, 2, 200],
      ]);
    },
  );
});

const authenticationFaults: [string, string, number, (keys: TransferSandbox['keys']) => Record<string, string>][] = [
  ['§5.4', 'x-api-key is missing', 404, ({ valid }) => ({ 'x-api-secret': valid.apiSecret })],
  ['§5.4', 'x-api-key is unknown', 400, ({ valid }) => ({ 'x-api-key': 'nobody', 'x-api-secret': valid.apiSecret })],
  ['§5.4', 'x-api-secret is missing', 400, ({ valid }) => ({ 'x-api-key': valid.apiKey })],
  ['§5.4', 'x-api-secret is wrong', 400, ({ valid }) => ({ 'x-api-key': valid.apiKey, 'x-api-secret': 'other' })],
  [
    '§5.4',
    'x-api-secret belongs to another key',
    400,
    ({ valid, expired }) => ({ 'x-api-key': valid.apiKey, 'x-api-secret': expired.apiSecret }),
  ],
  ['§5.4', 'the key is revoked', 400, ({ revoked }) => headersOf(revoked)],
  ['§5.4', 'the merchant is inactive', 400, ({ merchantInactive }) => headersOf(merchantInactive)],
  ['§5.4', 'the key has expired', 400, ({ expired }) => headersOf(expired)],
  ['§5.1', 'both headers are missing', 404, () => ({})],
];

describe('service §5, authentication', () => {
  test.each(authenticationFaults)(
    '%s: when %s, both endpoints respond %i',
    async (_section, _case, status, headers) => {
      const sandbox = await startSandbox();
      const given = { 'Content-Type': 'application/json', ...headers(sandbox.keys) };
      const creation = await call(sandbox, '/transactions/transfer', { method: 'POST', body: '{}', headers: given });
      expect(creation).toEqual({ status, body: errorBody(status) });
      expect(await call(sandbox, '/transactions/some', { headers: given })).toEqual({
        status,
        body: errorBody(status),
      });
      expect(sandbox.transfers()).toEqual([]);
    },
  );
});
