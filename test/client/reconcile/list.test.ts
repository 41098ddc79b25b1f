// What `pending` yields: numeric ids, what is no transfer, a transfer twice, more without end, and dates in the future.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { reconcileTransfers, type PendingTransfer, type Reconciled } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../../support/helpers/containing.js';
import { startPayouts } from '../service/support.js';
import { emptyReport, final, startKnowing, startQueries, transfers, serviceOf, reconcile } from '../support.js';

const createdAt = Date.now() - 3_600_000;
const dayMs = 86_400_000;

/** Transfers with one creation time, as rows have it that were inserted in one transaction. */
const inserted = (count: number): PendingTransfer[] =>
  Array.from({ length: count }, (_, index) => ({ id: `tr-${index}`, createdAt: new Date(createdAt) }));

/** A client of your own. No request is sent, so that many transfers can be read. */
const client = serviceOf({
  getTransaction: (id: string) => Promise.resolve({ ...transferSucceeded({ id }).data, status: 'PENDING' }),
});

test.each([
  ['returns to the first row of a batch', inserted(25), 10],
  ['returns to the first row of a large batch, with a large page', inserted(12_000), 11_000],
  ['repeats the last row', inserted(25), 1],
  ['repeats the last rows of one creation time', [...transfers(5), ...inserted(8_000)], 3],
])('a run ends where an endless `pending` %s, and each transfer is queried once', async (_, rows, page) => {
  const isClosed = { yet: false };
  function* repeat(): Generator<PendingTransfer> {
    try {
      yield* rows;
      for (;;) yield* page === 10 || page === 11_000 ? rows.slice(0, page) : rows.slice(-page);
    } finally {
      isClosed.yet = true;
    }
  }
  const run = reconcile(client, { pending: repeat(), concurrency: 1 });
  await expect(run).rejects.toMatchObject({
    code: 'PENDING_FAILED',
    message: containing(
      '`pending` has yielded 1000 transfers in a row that it had yielded before, the last of them tr-',
    ),
    report: { pending: rows.length, queries: rows.length, stopped: 'error' },
  });
  expect(isClosed.yet).toBe(true);
});

describe('repetitions of a transfer', () => {
  const success = transferSucceeded();
  const { id } = success.data;
  function* generate(items: readonly PendingTransfer[]): Generator<PendingTransfer> {
    yield* items;
  }

  test('a transfer that is twice in an array is reconciled twice, and is a duplicate then', async () => {
    const { client } = await startKnowing({ ...success.data });
    const pending = Array.from({ length: 2_000 }, () => ({ id, createdAt }));
    const report = await reconcile(client, { pending: pending.slice(0, 3) });
    expect(report).toMatchObject({ ...emptyReport, processed: 1, duplicate: 2, queries: 3 });
    const young = await reconcile(client, { pending, minAgeMs: 86_400_000 });
    expect(young).toMatchObject({ ...emptyReport, pending: 2_000 });
  });

  test('a transfer that a generator repeats with the same creation time is skipped', async () => {
    const { client, received } = await startKnowing({ ...success.data });
    const pending = generate([
      { id, createdAt },
      { id, createdAt: new Date(createdAt) },
      { id, createdAt: 0 },
    ]);
    const report = await reconcile(client, { pending });
    expect(report).toMatchObject({ ...emptyReport, processed: 1, duplicate: 1, queries: 2 });
    expect(received).toHaveLength(2);
    const numeric = generate([8841, '8841', 8841n].map((each) => ({ id: each, createdAt })));
    expect(await reconcile(client, { pending: numeric })).toMatchObject({ ...emptyReport, unknown: 1, problems: [{}] });
  });

  test('fewer than 1 000 repetitions in a row are no fault', async () => {
    const rows = inserted(1_500).flatMap((row) => [row, row]);
    // The last of `rows` is the first in a row.
    const pending = generate([...rows, ...rows.slice(0, 998)]);
    const report = await reconcile(client, { pending });
    expect(report).toMatchObject({ ...emptyReport, pending: 1_500, queries: 1_500 });
  });
});

test('a numeric key is read as a string', async () => {
  const { client, received } = await startQueries(final);
  const ids: string[] = [];
  const pending = [8841, 2 ** 53 - 1, 2n ** 64n].map((id) => ({ id, createdAt }));
  const onProgress = ({ id }: { id: string }): unknown => ids.push(id);
  expect(await reconcile(client, { pending, concurrency: 1, onProgress })).toMatchObject({ processed: 3 });
  expect(ids).toEqual(['8841', '9007199254740991', '18446744073709551616']);
  expect(received.map(({ url }) => url)).toEqual(ids.map((id) => `/transactions/${id}`));
});

test('an item of `pending` that is no transfer fails alone, with an error that names the fault', async () => {
  const cases: [item: object, message: string][] = [
    [
      { id: 2 ** 53, createdAt },
      'Expected `id` of a transfer of `pending` to be a string, or a whole number up to 9007199254740991, got 9007199254740992.',
    ],
    [{ id: 8841.5, createdAt }, 'whole number up to 9007199254740991, got 8841.5.'],
    [{ createdAt }, 'whole number up to 9007199254740991, got undefined.'],
    [{ id: 'a', created_at: createdAt }, 'to be a Date or milliseconds since 1970, not in the future, got undefined.'],
    [
      { id: 'a', createdAt: '2026-11-01' },
      'Expected `createdAt` of a transfer of `pending` to be a Date or milliseconds since 1970, not in the future, got "2026-11-01".',
    ],
    [{ id: 'a', createdAt: new Date('2999-01-01') }, 'got "2999-01-01".'],
    [{ id: 'a', createdAt: new Date('soon') }, 'not in the future, got '],
    [{ id: 'a', createdAt: -Infinity }, 'not in the future, got -Infinity.'],
    [{ id: 'a', createdAt: null }, 'not in the future, got null.'],
    [null as never, 'Expected a transfer of `pending` to be `{ id, createdAt }`, got null.'],
    [5 as never, 'Expected a transfer of `pending` to be `{ id, createdAt }`, got 5.'],
  ];
  for (const [item, message] of cases) {
    const pending = [item as PendingTransfer, ...inserted(1)];
    const report = await reconcile(client, { pending });
    const problems = [{ error: { code: 'INVALID_ARGUMENT', message: containing(message) } }];
    expect(report, message).toMatchObject({ failed: 1, pending: 1, problems });
    expect(report.oldestOpenMs).toBeLessThan(10 * dayMs);
  }
});

test('a transfer that was created later than clocks differ is queried immediately, and is a problem', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  vi.setSystemTime('2026-11-28T12:00:00Z');
  const { receiver, ran, received } = await startPayouts({
    byMinutes: 'SUCCESS',
    byHours: 'SUCCESS',
    open: 'payout.returning',
  });
  const ages = {
    byMinutes: -15 * 60_000,
    byHours: -15 * 60_000 - 1,
    open: 1 - dayMs,
    unheard: -7_200_000,
    beyond: -dayMs,
  };
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

test('an item of `paid` without a date, or with one in the future, is named as one of `paid`', async () => {
  const { receiver } = await startPayouts({ a: 'REVERSED', b: 'SUCCESS' });
  const { paid } = await reconcileTransfers({
    receiver,
    concurrency: 1,
    paid: [{ id: 'a', createdAt: Date.now() + 3_600_000 }, { id: 'b', createdAt: Date.now() }, { id: 'c' } as never],
  });
  const problems = [
    {
      id: 'a',
      paid: true,
      error: { message: containing('`createdAt` of a transfer of `paid` to be in the past, got ') },
    },
    {
      id: 'c',
      paid: true,
      error: { message: containing('Expected `createdAt` of a transfer of `paid` to be a Date') },
    },
  ];
  expect(paid).toMatchObject({ processed: 1, unchanged: 1, failed: 1, problems });
});
