// A `createdAt` in the future, of a database that keeps local time for example.
import { expect, onTestFinished, test, vi } from 'vitest';
import { reconcileTransfers, type Reconciled } from 'transfer-callbacks/client';
import { containing } from '../../support/helpers/containing.js';
import { startPayouts } from '../service/support.js';

const quarterMs = 15 * 60_000;
const dayMs = 86_400_000;

test('a transfer that was created later than clocks differ is queried immediately, and is a problem', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  vi.setSystemTime('2026-11-28T12:00:00Z');
  const { receiver, ran, received } = await startPayouts({
    byMinutes: 'SUCCESS',
    byHours: 'SUCCESS',
    open: 'payout.returning',
  });
  const ages = { byMinutes: -quarterMs, byHours: -quarterMs - 1, open: 1 - dayMs, unheard: -7_200_000, beyond: -dayMs };
  const told: Reconciled[] = [];
  const report = await reconcileTransfers({
    receiver,
    pending: Object.entries(ages).map(([id, ageMs]) => ({ id, createdAt: new Date(Date.now() - ageMs) })),
    concurrency: 1,
    onProgress: (each) => told.push(each),
  });
  const error = {
    code: 'INVALID_ARGUMENT',
    message: containing(
      'Expected `createdAt` of a transfer of `pending` to be in the past, got 2026-11-28T12:15:00.001Z: another time zone?',
    ),
  };
  expect(told).toMatchObject([
    { id: 'byMinutes', result: 'pending', reason: 'too_young' },
    { id: 'byHours', result: 'processed', status: 'payout.paid', error },
    { id: 'open', result: 'pending', reason: 'not_final', error: { code: 'INVALID_ARGUMENT' } },
    { id: 'unheard', result: 'unknown', error: { code: 'REFUSED', status: 404 } },
    { id: 'beyond', result: 'failed', error: { code: 'INVALID_ARGUMENT' } },
  ]);
  expect(told[0]).not.toHaveProperty('error');
  expect(ran).toEqual(['SUCCESS byHours']);
  expect(received).toHaveLength(3);
  expect(report).toMatchObject({ processed: 1, pending: 2, unknown: 1, failed: 1, oldestOpenMs: undefined });
  expect(report.problems).toEqual(told.slice(1));
});

test('a paid transfer that was created in the future is a problem, too', async () => {
  const { receiver } = await startPayouts({ a: 'REVERSED', b: 'SUCCESS' });
  const createdAt = Date.now() + 3_600_000;
  const { paid } = await reconcileTransfers({
    receiver,
    paid: [
      { id: 'a', createdAt },
      { id: 'b', createdAt: Date.now() },
    ],
  });
  const message = containing('Expected `createdAt` of a transfer of `paid` to be in the past, got ');
  expect(paid).toMatchObject({ processed: 1, unchanged: 1, problems: [{ id: 'a', paid: true, error: { message } }] });
});
