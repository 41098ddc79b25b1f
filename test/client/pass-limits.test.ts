import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { final, old, startQueries, transfers } from './support.js';

describe('the limits of a pass', () => {
  test('`limit` ends it after so many transfers, and all of these are read', async () => {
    const { client } = await startQueries(final);
    const options = { client, receiver: receiverOf(), limit: 7 };
    const report = await reconcileTransfers({ ...options, pending: transfers(20) });
    expect(report).toMatchObject({ stopped: 'limit', processed: 7, pending: 0, queries: 7, cursor: { id: 'tr-6' } });
    expect(await reconcileTransfers({ ...options, pending: [] })).toMatchObject({ stopped: undefined });
  });

  test('a signal that times out ends it: what is being read stays pending, and a handler that runs finishes', async () => {
    const { client } = await startQueries((id) => (id === 'tr-1' ? () => undefined : final(id)));
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf({ onSuccess: () => pause(3_000) }),
      pending: transfers(20),
      concurrency: 2,
      signal: AbortSignal.timeout(2_500),
    });
    expect(report).toMatchObject({ stopped: 'aborted', processed: 1, pending: 1, cursor: { id: 'tr-0' } });
  });

  test('`queriesPerSecond` spaces the queries, and young transfers do not wait', async () => {
    const at: number[] = [];
    const { client } = await startQueries((id) => {
      at.push(performance.now());
      return final(id);
    });
    const young = Array.from({ length: 100 }, (_, index) => ({ id: `young-${index}`, createdAt: Date.now() }));
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: [...young, ...transfers(6)],
      queriesPerSecond: 20,
    });
    expect(report).toMatchObject({ processed: 6, pending: 100 });
    expect(report.durationMs).toBeGreaterThanOrEqual(249);
  });
});

describe('reconcileTransfers', () => {
  test('takes transfers from a stream as it needs them, `concurrency` at a time', async () => {
    let taken = 0;
    let running = 0;
    let most = 0;
    let ahead = 0;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      for (let index = 0; index < 50; index += 1) {
        taken += 1;
        ahead = Math.max(ahead, taken - done);
        yield Promise.resolve(old(`payout-${index}`));
      }
    }
    let done = 0;
    const counted = await reconcileTransfers({
      client: {
        async getTransaction(id) {
          running += 1;
          most = Math.max(most, running);
          await new Promise(setImmediate);
          running -= 1;
          return { ...transferSucceeded().data, externalId: id };
        },
      },
      receiver: receiverOf(),
      pending: cursor(),
      concurrency: 3,
      onProgress: () => {
        done += 1;
      },
    });
    expect(counted.processed).toBe(50);
    expect(most).toBe(3);
    expect(ahead).toBeLessThanOrEqual(4);
  });
});
