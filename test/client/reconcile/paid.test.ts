// The list of what was paid: only what the service has reversed since is handled.
import { describe, expect, test } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { reconcileTransfers, type Reconciled } from 'transfer-callbacks/client';
import { later } from '../../core/support.js';
import { registerMetrics } from '../../metrics/support.js';
import { containing } from '../../support/helpers/containing.js';
import { listen } from '../../support/helpers/listen.js';
import { announced } from '../../support/helpers/reversing.js';
import { startRedisForFile } from '../../support/servers/redis-for-file.js';
import { listOf, startPayouts } from '../service/support.js';
import type { Reply } from '../support.js';

const own = startRedisForFile();

/** A store whose keys are those of one test. */
const makeStore = () => redisStore(own.redis, { prefix: `${crypto.randomUUID()}:` });

describe('of `paid`', () => {
  test('only a reversal is handed to the receiver, once, and every other status runs nothing', async () => {
    const { receiver, ran } = await startPayouts(
      { paid: 'SUCCESS', failed: 'FAILED', reversed: 'REVERSED', returning: 'payout.returning' },
      makeStore(),
    );
    await receiver.receive(announced('SUCCESS', 'reversed'));
    const told: Reconciled[] = [];
    const paid = listOf('paid', 'failed', 'reversed', 'returning', 'unheard-of', 'a/b');
    const run = () => reconcileTransfers({ receiver, paid, concurrency: 1, onProgress: (each) => told.push(each) });
    const report = await run();
    expect(ran).toEqual(['SUCCESS reversed', 'REVERSED reversed']);
    expect(report).toMatchObject({ processed: 0, pending: 0, failed: 0, stopped: undefined, cursor: undefined });
    expect(report.paid).toMatchObject({
      ...{ unchanged: 1, processed: 1, duplicate: 0, pending: 1, failed: 2, unknown: 1, queries: 6 },
      ...{ stopped: undefined, cursor: paid[5], openStatuses: { 'payout.returning': 1 }, advice: undefined },
    });
    const message = containing('The service reports the transfer as failed, and your books have it as paid.');
    expect(told).toMatchObject([
      { id: 'paid', paid: true, result: 'unchanged', status: 'payout.paid' },
      { id: 'failed', paid: true, result: 'failed', error: { code: 'NOT_HANDLED', message } },
      { id: 'reversed', paid: true, result: 'processed', status: 'payout.returned' },
      { id: 'returning', paid: true, result: 'pending', reason: 'not_final' },
      { id: 'unheard-of', paid: true, result: 'unknown' },
      { id: 'a/b', paid: true, result: 'failed', error: { code: 'INVALID_ID' } },
    ]);
    expect((await run()).paid).toMatchObject({ duplicate: 1, processed: 0 });
    expect(await receiver.receive(announced('REVERSED', 'reversed'))).toMatchObject({ outcome: 'duplicate' });
    expect(ran).toHaveLength(2);
  });

  test('a transfer that is open a week after its creation is a problem, as one whose success was forged', async () => {
    const known = { old: 'payout.returning', young: 'payout.returning', done: 'SUCCESS' } as const;
    const { receiver, ran } = await startPayouts(known);
    const dayMs = 86_400_000;
    const paid = [
      { id: 'old', createdAt: Date.now() - 8 * dayMs },
      { id: 'young', createdAt: Date.now() - 6 * dayMs },
      { id: 'done', createdAt: Date.now() - 8 * dayMs },
    ];
    const report = await reconcileTransfers({ receiver, paid });
    expect(report.durationMs).toBeGreaterThanOrEqual(report.paid?.durationMs ?? Infinity);
    expect(report.paid).toMatchObject({
      ...{ pending: 2, unchanged: 1 },
      problems: [{ id: 'old', result: 'pending', reason: 'not_final', error: { code: 'NOT_HANDLED' } }],
    });
    expect(report.paid?.problems).toHaveLength(1);
    expect(ran).toEqual([]);
  });

  test('nothing is booked again if the store has lost its records, and a reversal still is', async () => {
    const { receiver, ran } = await startPayouts({ a: 'SUCCESS', b: 'REVERSED' }, makeStore());
    await receiver.receive(announced('SUCCESS', 'a'));
    await receiver.receive(announced('SUCCESS', 'b'));
    await own.redis.flushall();
    const report = await reconcileTransfers({ receiver, paid: listOf('a', 'b') });
    expect(report.paid).toMatchObject({ unchanged: 1, processed: 1 });
    expect(ran).toEqual(['SUCCESS a', 'SUCCESS b', 'REVERSED b']);
  });

  test('a reversal whose callback comes at the same moment is handled once', async () => {
    const [begun, goOn] = [later(), later()];
    const handle = async (status: string): Promise<void> => {
      if (status !== 'REVERSED') return;
      begun.resolve();
      await goOn.promise;
    };
    const { receiver, ran } = await startPayouts({ a: 'REVERSED', b: 'REVERSED' }, makeStore(), { handle });
    await receiver.receive(announced('SUCCESS', 'a'));
    const run = reconcileTransfers({ receiver, paid: listOf('a') });
    await begun.promise;
    const callback = receiver.receive(announced('REVERSED', 'a'));
    goOn.resolve();
    expect((await run).paid).toMatchObject({ processed: 1 });
    expect(await callback).toMatchObject({ outcome: 'duplicate' });
    await receiver.receive(announced('SUCCESS', 'b'));
    const first = receiver.receive(announced('REVERSED', 'b'));
    const second = reconcileTransfers({ receiver, paid: listOf('b') });
    expect(await first).toMatchObject({ outcome: expect.stringMatching(/^(processed|duplicate)$/) as string });
    expect((await second).failed + ((await second).paid?.failed ?? 1)).toBe(0);
    expect(ran.filter((each) => each.startsWith('REVERSED'))).toEqual(['REVERSED a', 'REVERSED b']);
  });
});

describe('both lists', () => {
  test('are read one after the other, each with `concurrency`', async () => {
    let [running, most] = [0, 0];
    const slow: Reply = (response) => {
      running += 1;
      most = Math.max(most, running);
      setTimeout(() => {
        running -= 1;
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify(announced('SUCCESS', 'slow')));
      }, 20);
    };
    const ids = ['p1', 'p2', 'p3'];
    const { receiver, received } = await startPayouts({ open: 'FAILED', p1: slow, p2: slow, p3: slow });
    const lists = { pending: listOf('open'), paid: listOf(...ids) };
    const report = await reconcileTransfers({ receiver, ...lists, concurrency: 2 });
    expect(received.map(({ url }) => url?.split('/')[2])).toEqual(['open', ...ids]);
    expect(most).toBe(2);
    expect(report).toMatchObject({ processed: 1, queries: 1, paid: { failed: 3, queries: 3 } });
  });

  test('share their limit and their signal, and each has its cursor', async () => {
    const { receiver, received } = await startPayouts({ a: 'SUCCESS', b: 'SUCCESS', c: 'SUCCESS', d: 'SUCCESS' });
    const lists = { pending: listOf('a', 'b'), paid: listOf('c', 'd') };
    const three = await reconcileTransfers({ receiver, ...lists, limit: 3 });
    expect(three).toMatchObject({ processed: 2, stopped: undefined, cursor: { id: 'b' } });
    expect(three.paid).toMatchObject({ unchanged: 1, stopped: 'limit', cursor: { id: 'c' } });
    const one = await reconcileTransfers({ receiver, ...lists, limit: 1 });
    expect(one).toMatchObject({ stopped: 'limit', cursor: { id: 'a' }, paid: { stopped: 'limit', queries: 0 } });
    const controller = new AbortController();
    const aborted = await reconcileTransfers({
      ...{ receiver, ...lists, concurrency: 1, signal: controller.signal },
      onProgress: ({ paid }) => {
        if (paid === true) controller.abort();
      },
    });
    expect(aborted).toMatchObject({
      stopped: undefined,
      paid: { unchanged: 1, stopped: 'aborted', cursor: { id: 'c' } },
    });
    expect(received).toHaveLength(3 + 1 + 3);
  });

  test('`paid` is not begun while the service is unavailable', async () => {
    const { receiver, received } = await startPayouts({ a: [503, '', { 'Retry-After': '3600' }], b: 'REVERSED' });
    const report = await reconcileTransfers({ receiver, pending: listOf('a'), paid: listOf('b') });
    expect(report).toMatchObject({ failed: 1, stopped: undefined, paid: { stopped: 'unavailable', queries: 0 } });
    expect(received).toHaveLength(1);
  });

  test('what throws rejects the run, with its code and what both lists have done', async () => {
    const { receiver } = await startPayouts({ a: 'SUCCESS', b: 'SUCCESS' });
    function* broken() {
      yield* listOf('b');
      throw new Error('no connection');
    }
    const report = { processed: 1, stopped: undefined, paid: { unchanged: 1, stopped: 'error' } };
    await expect(reconcileTransfers({ receiver, pending: listOf('a'), paid: broken() })).rejects.toMatchObject({
      ...{ code: 'PAID_FAILED', message: containing('`paid` threw: no connection'), report },
    });
    await expect(reconcileTransfers({ receiver, pending: broken(), paid: listOf('a') })).rejects.toMatchObject({
      ...{ code: 'PENDING_FAILED', report: { stopped: 'error', paid: { stopped: 'error', queries: 0 } } },
    });
    function* endless() {
      for (;;) yield* listOf('b').map((each) => ({ ...each, createdAt: 0 }));
    }
    const message = containing('`paid` has yielded 1000 transfers in a row');
    await expect(reconcileTransfers({ receiver, paid: endless() })).rejects.toMatchObject({
      code: 'PAID_FAILED',
      message,
    });
  });
});

test('the metrics count both lists, and a run over `paid` alone is not taken for one over open transfers', async () => {
  const { series } = registerMetrics();
  const messages: unknown[] = [];
  listen('transfer-callbacks:reconciled', (message) => messages.push(message));
  const { receiver } = await startPayouts({ open: 'payout.returning', a: 'SUCCESS', b: 'FAILED' });
  const count = async (name: string) => (await series()).get(`transfer_callbacks_${name}`);
  await reconcileTransfers({ receiver, paid: listOf('a', 'b') });
  expect(messages).toMatchObject([{ onlyPaid: true, oldestOpenAt: undefined }]);
  expect(await count('reconciled_total{result="unchanged"}')).toBe(1);
  expect(await count('reconciled_total{result="failed"}')).toBe(1);
  expect(await count('reconciliation_last_end_timestamp_seconds')).toBeUndefined();
  expect(await count('open_transfers')).toBeUndefined();
  await reconcileTransfers({ receiver, pending: listOf('open'), paid: listOf('a', 'b') });
  expect(await count('reconciled_total{result="unchanged"}')).toBe(2);
  expect(await count('open_transfers')).toBe(1);
  expect(await count('reconciliation_last_end_timestamp_seconds')).toBeGreaterThan(0);
});

test('a list that is no iterable is refused, and the error has the code to write', async () => {
  const { receiver } = await startPayouts({});
  await expect(reconcileTransfers({ receiver, paid: (() => []) as never })).rejects.toMatchObject({
    ...{ code: 'INVALID_ARGUMENT', message: containing('got a function. Write `paid: paidPayouts()`.') },
  });
});
