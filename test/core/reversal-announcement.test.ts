// With a transactional store a reversal of a success is announced, and a look counts for a limited time.
import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { toAnnouncementKey, toReversalKey } from '../../src/core/callback.js';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { fakeClock, later, turn } from './support.js';

const id = 'payout';

beforeEach(fakeClock);

/** What another process has recorded. */
async function settle(store: ReturnType<typeof memoryStore>, key: string, status: Status): Promise<void> {
  const fingerprint = JSON.stringify([status, 100, 'XAF', `payout-${id}`]);
  const request = { token: 'another', fingerprint, leaseMs: 1_000, retentionMs: 100_000 };
  const reply = await store.claim(key, request);
  if (reply.state === 'claimed') await reply.claim.settle();
}

test.each<[Status, string, 'processed' | 'duplicate']>([
  ['FAILED', 'looks again at what was given back meanwhile', 'duplicate'],
  ['REVERSED', 'looks again at what was given back meanwhile', 'duplicate'],
  ['FAILED', 'is handled if nothing was given back meanwhile', 'processed'],
])('a callback of %s whose claim is granted late %s', async (status, _what, outcome) => {
  const store = memoryStore();
  let isFirst = true;
  const { receiver, ran } = reversingReceiver({
    ...store,
    transactional: true,
    async claim(key, request) {
      if (key === id && isFirst) {
        isFirst = false;
        // Meanwhile another process handles success and reversal, and the record of the success ends.
        if (outcome === 'duplicate') await settle(store, await toReversalKey(id), 'REVERSED');
        await vi.advanceTimersByTimeAsync(2_000);
      }
      return store.claim(key, request);
    },
  });
  expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome });
  expect(ran).toEqual(outcome === 'processed' ? [`${status} ${id}`] : []);
  expect((await store.read(id)).state).toBe(outcome === 'processed' ? 'settled' : 'free');
});

test('a reversal of a success is announced, waits, and gives way to a failure that has not seen it', async () => {
  const store = memoryStore();
  const { receiver, ran } = reversingReceiver({ ...store, transactional: true });
  await settle(store, id, 'SUCCESS');
  const reversing = receiver.receive(announced('REVERSED', id));
  await turn();
  expect((await store.read(await toAnnouncementKey(id))).state).toBe('settled');
  expect((await store.read(await toReversalKey(id))).state).toBe('free');
  await store.forget(id, JSON.stringify(['SUCCESS', 100, 'XAF', `payout-${id}`]));
  await settle(store, id, 'FAILED');
  await vi.advanceTimersByTimeAsync(3_000);
  expect(await reversing).toMatchObject({ outcome: 'duplicate', settled: { status: 'FAILED' } });
  expect(ran).toEqual([]);
});

test('a failure does not run once a reversal is announced, and waits for it where the success has ended', async () => {
  const store = memoryStore();
  const { receiver, ran } = reversingReceiver({ ...store, transactional: true });
  await settle(store, await toAnnouncementKey(id), 'REVERSED');
  const failing = receiver.receive(announced('FAILED', id));
  await vi.advanceTimersByTimeAsync(5_000);
  const reversing = receiver.receive(announced('REVERSED', id));
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await reversing).toMatchObject({ outcome: 'processed' });
  expect(await failing).toMatchObject({ outcome: 'duplicate', settled: { status: 'REVERSED' } });
  expect(ran).toEqual([`REVERSED ${id}`]);
});

test('a failure after an announced reversal that is not handled is a conflict while the success lives, and in progress after it', async () => {
  const store = memoryStore();
  const { receiver, ran } = reversingReceiver({ ...store, transactional: true });
  await settle(store, id, 'SUCCESS');
  await settle(store, await toAnnouncementKey(id), 'REVERSED');
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'conflict' });
  await store.forget(id, JSON.stringify(['SUCCESS', 100, 'XAF', `payout-${id}`]));
  const failing = receiver.receive(announced('FAILED', id));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await failing).toMatchObject({ outcome: 'in_progress' });
  expect(ran).toEqual([]);
});

test('a reversal with another amount than the announced one is a conflict, even where the success has ended', async () => {
  const store = memoryStore();
  const { receiver, ran } = reversingReceiver({ ...store, transactional: true });
  await settle(store, await toAnnouncementKey(id), 'REVERSED');
  expect(await receiver.receive(announced('REVERSED', id, { amount: 99 }))).toMatchObject({ outcome: 'conflict' });
  expect(ran).toEqual([]);
});

test('a reversal that has waited, and records what it gave back, has waited until its handler began', async () => {
  const works = { SUCCESS: later(), FAILED: later(), REVERSED: later() };
  const { receiver } = reversingReceiver(
    { ...memoryStore(), transactional: true },
    { handle: (status) => works[status].promise },
  );
  const failing = receiver.receive(announced('FAILED', id));
  await turn();
  const reversing = receiver.receive(announced('REVERSED', id));
  await vi.advanceTimersByTimeAsync(1_000);
  works.FAILED.reject(new Error('no'));
  expect(await failing).toMatchObject({ outcome: 'handler_failed' });
  await vi.advanceTimersByTimeAsync(3_000);
  works.REVERSED.resolve();
  expect(await reversing).toMatchObject({ outcome: 'processed', waitedMs: 1_000, durationMs: 4_000 });
});

test('a reversal that waits to record what it gave back has not waited for its handler', async () => {
  const store = memoryStore();
  const works = { SUCCESS: later(), FAILED: later(), REVERSED: later() };
  const { receiver } = reversingReceiver(
    { ...store, transactional: true },
    { handle: (status) => works[status].promise },
  );
  const reversing = receiver.receive(announced('REVERSED', id));
  await vi.advanceTimersByTimeAsync(1_000);
  const request = { token: 'another', fingerprint: '[]', leaseMs: 60_000, retentionMs: 100_000 };
  await store.claim(await toReversalKey(id), request);
  works.REVERSED.resolve();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await reversing).toMatchObject({ outcome: 'processed', waitedMs: 0, durationMs: 10_000 });
});
