import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test } from 'vitest';
import { book, receiverOn, startLedger } from '../support/postgres.js';

test('what is to follow the commit sees the writes, and is not called if they were rolled back', async () => {
  const { server, pool, bookings } = await startLedger({ max: 10 });
  onTestFinished(() => server.stop());
  const seen: unknown[] = [];
  const receiver = (commits: boolean) =>
    receiverOn(pool, {
      async onSuccess(callback, context) {
        await book(callback, context);
        context.afterCommit(async () => seen.push(await bookings(callback.data.id)));
        if (!commits) await context.tx.query('/* by an ORM */ ROLLBACK');
      },
    });
  const lost = receiver(false);
  expect((await lost.receive(transferSucceeded())).outcome).toBe('store_unavailable');
  expect(await lost.close()).toEqual({ unfinished: 0, ids: [] });
  expect(seen).toEqual([]);
  const kept = receiver(true);
  expect((await kept.receive(transferSucceeded())).outcome).toBe('processed');
  expect(await kept.close()).toEqual({ unfinished: 0, ids: [] });
  expect(seen).toEqual([['SUCCESS']]);
});
