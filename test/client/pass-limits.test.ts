import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { reconcileTransfers } from 'transfer-callbacks/client';
import { receiverOf } from '../core/support.js';
import { final, startQueries, transfers } from './support.js';

describe('the limits of a pass', () => {
  test('`limit` ends it after so many transfers, and all of these are read', async () => {
    const { client } = await startQueries(final);
    const options = { client, receiver: receiverOf(), limit: 7 };
    const report = await reconcileTransfers({ ...options, pending: transfers(20) });
    expect(report).toMatchObject({ stopped: 'limit', processed: 7, pending: 0, queries: 7, cursor: { id: 'tr-6' } });
    expect(await reconcileTransfers({ ...options, pending: [] })).toMatchObject({ stopped: undefined });
  });

  test('`deadlineMs` ends it: what is being read stays pending, and a handler that runs comes to its end', async () => {
    const { client } = await startQueries((id) => (id === 'tr-1' ? () => undefined : final(id)));
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf({ onSuccess: () => pause(3_000) }),
      pending: transfers(20),
      concurrency: 2,
      deadlineMs: 2_500,
    });
    expect(report).toMatchObject({ stopped: 'deadline', processed: 1, pending: 1, cursor: { id: 'tr-0' } });
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
