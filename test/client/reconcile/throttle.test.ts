import { describe, expect, test, vi } from 'vitest';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf, storeWith } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { final, hangUp, old, refusal, startQueries, transfers, serviceOf, reconcile } from '../support.js';

describe('the limits of a run', () => {
  test('`limit` ends it after so many transfers, and all of these are read', async () => {
    const { client } = await startQueries(final);
    const report = await reconcile(client, { pending: transfers(20), limit: 7 });
    expect(report).toMatchObject({ stopped: 'limit', processed: 7, pending: 0, queries: 7, cursor: { id: 'tr-6' } });
    expect(await reconcile(client, { pending: [], limit: 7 })).toMatchObject({ stopped: undefined });
  });

  test('`queriesPerSecond` spaces the queries, and young transfers do not wait', async () => {
    const { client } = await startQueries(final);
    const young = Array.from({ length: 100 }, (_, index) => ({ id: `young-${index}`, createdAt: Date.now() }));
    const report = await reconcile(client, { pending: [...young, ...transfers(6)], queriesPerSecond: 20 });
    expect(report).toMatchObject({ processed: 6, pending: 100 });
    expect(report.durationMs).toBeGreaterThanOrEqual(249);
  });

  test('takes transfers from a stream as it needs them, `concurrency` at a time', async () => {
    const now = { taken: 0, running: 0, done: 0 };
    const most = { running: 0, ahead: 0 };
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      for (const transfer of transfers(50)) {
        now.taken += 1;
        most.ahead = Math.max(most.ahead, now.taken - now.done);
        yield Promise.resolve(transfer);
      }
    }
    const service = serviceOf({
      async getTransaction(id) {
        now.running += 1;
        most.running = Math.max(most.running, now.running);
        await new Promise(setImmediate);
        now.running -= 1;
        return { ...transferSucceeded({ id }).data };
      },
    });
    const onProgress = (): unknown => (now.done += 1);
    const counted = await reconcile(service, { pending: cursor(), concurrency: 3, onProgress });
    expect(counted.processed).toBe(50);
    expect(most.running).toBe(3);
    expect(most.ahead).toBeLessThanOrEqual(4);
  });
});

/** Lets 20 ms of the fake time pass in each turn of the event loop, so that sockets work meanwhile. */
async function inFakeTime<T>(run: () => Promise<T>): Promise<T> {
  fakeClock();
  const running = run();
  const ended = { yet: false };
  const end = (): void => {
    ended.yet = true;
  };
  running.then(end, end);
  while (!ended.yet) {
    await vi.advanceTimersByTimeAsync(20);
    await new Promise(setImmediate);
  }
  return running;
}

describe('a run, while the service is in trouble,', () => {
  test('does not query the next transfer before the time that the service asks for', async () => {
    const at: number[] = [];
    const { client } = await startQueries((id) => {
      at.push(performance.now());
      return id === 'tr-0' ? [429, '', { 'Retry-After': '60' }] : final(id);
    });
    const report = await inFakeTime(() => reconcile(client, { pending: transfers(3), concurrency: 1 }));
    expect(report).toMatchObject({ processed: 2, failed: 1, stopped: undefined });
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(60_000);
    expect((at[2] ?? 0) - (at[1] ?? 0)).toBeLessThan(5_000);
  });

  test('pauses for 1 s after a failure, then for twice as long each time, and for a minute at most', async () => {
    const at: number[] = [];
    const client = serviceOf({
      getTransaction() {
        at.push(performance.now());
        return Promise.reject(new Error('down'));
      },
    });
    const report = await inFakeTime(() => reconcile(client, { pending: transfers(11), concurrency: 1 }));
    expect(report).toMatchObject({ stopped: 'unavailable', queries: 10 });
    const pauses = at.slice(1).map((ms, index) => Math.floor((ms - (at[index] ?? 0)) / 1_000));
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test('ends after 10 failures in a row, with growing pauses, at concurrency 4', async () => {
    const { client } = await startQueries(() => hangUp);
    const report = await inFakeTime(() => reconcile(client, { pending: transfers(10_000) }));
    expect(report).toMatchObject({ stopped: 'unavailable', failed: 10 });
    expect(report.queries).toBeLessThan(14);
    expect(report.durationMs).toBeGreaterThan(60_000);
  });

  test('ends after 10 refusals in a row, since the key may be revoked; ids that are not sent do not count', async () => {
    const { client, received } = await startQueries(() => refusal(400, 'Key revoked'));
    const pending = transfers(20).flatMap((transfer) => [transfer, old('a/b')]);
    const report = await reconcile(client, { pending, concurrency: 1 });
    expect(report).toMatchObject({ stopped: 'refused', failed: 19 });
    expect(received).toHaveLength(10);
  });

  test('goes on where failures are not in a row, and where responses are unreadable, transfers unknown or ids bad', async () => {
    const { client } = await startQueries((id) => {
      const index = Number(id.slice(3));
      if (index >= 60 && index < 80) return [200, '<html>'];
      if (index >= 100 || index % 20 === 19) return refusal(404, 'Unknown');
      return index % 20 === 9 ? final(id) : refusal(400, 'No');
    });
    const pending = [...transfers(120), ...Array.from({ length: 20 }, () => old('a/b'))];
    const report = await reconcile(client, { pending, concurrency: 1 });
    expect(report).toMatchObject({ stopped: undefined, processed: 4, failed: 112, unknown: 24 });
  });

  test('ends when the store of the receiver stays down', async () => {
    const { client } = await startQueries(final);
    const store = storeWith({ claim: () => Promise.reject(new Error('no store')) });
    const report = await inFakeTime(() =>
      reconcileTransfers({ receiver: receiverOf({ service: client, store }), pending: transfers(100), concurrency: 1 }),
    );
    expect(report).toMatchObject({ stopped: 'store_unavailable', failed: 10, queries: 10 });
    expect(report.problems[0]).toMatchObject({
      outcome: 'store_unavailable',
      error: { message: containing('The receiver ended with store_unavailable: no store.') },
    });
  });

  test('ends when the receiver closes: what was not handled is pending, and the next run begins there', async () => {
    const { client, received } = await startQueries(final);
    const receiver = receiverOf({ service: client });
    const report = await reconcileTransfers({
      receiver,
      pending: transfers(1_000),
      onProgress: (_reconciled, { processed }) => {
        if (processed === 50) void receiver.close();
      },
    });
    expect(report).toMatchObject({ stopped: 'closing', failed: 0, duplicate: 0, unknown: 0 });
    expect(received.length).toBeLessThan(60);
    const done = Number(String(report.cursor?.id).slice(3)) + 1;
    expect(done).toBeGreaterThanOrEqual(45);
    expect(done).toBeLessThanOrEqual(report.processed);
  });

  test('may be ended while it pauses', async () => {
    const { client } = await startQueries(() => [503, '', { 'Retry-After': '50' }]);
    const controller = new AbortController();
    const report = await reconcile(client, {
      pending: transfers(5),
      concurrency: 1,
      signal: controller.signal,
      onProgress: ({ result }) => {
        if (result === 'failed')
          setTimeout(() => {
            controller.abort();
          }, 20);
      },
    });
    expect(report).toMatchObject({ stopped: 'aborted', failed: 1, pending: 1, queries: 1, cursor: { id: 'tr-0' } });
  });
});
