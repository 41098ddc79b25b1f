import { once } from 'node:events';
import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, later, never, receiverOf, storeWith } from './support.js';

beforeEach(fakeClock);

test('close lets running handlers finish and refuses new deliveries', async () => {
  const work = later();
  const logger = recordingLogger();
  const confirm = vi.fn(() => true);
  const receiver = receiverOf({ logger, confirm, onSuccess: () => work.promise });
  const running = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(0);
  expect(receiver.closing).toBe(false);
  const closed = receiver.close();
  expect(receiver.closing).toBe(true);
  expect(await receiver.receive(transferFailed())).toMatchObject({ outcome: 'closing' });
  expect(confirm, 'a delivery that is refused is not even confirmed').toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(9_000);
  work.resolve();
  expect(await running).toMatchObject({ outcome: 'processed' });
  expect(await closed).toEqual({ unfinished: 0, ids: [] });
  expect(logger.lines.map(({ message }) => message)).toEqual(['A callback came while the receiver was closing.']);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(vi.getTimerCount(), 'a timer that goes on').toBe(0);
});

test('close resolves immediately when nothing runs, and a second call joins the first', async () => {
  const receiver = receiverOf();
  expect(await Promise.all([receiver.close(), receiver.close()])).toEqual([
    { unfinished: 0, ids: [] },
    { unfinished: 0, ids: [] },
  ]);
});

test('close aborts the signals after its timeout, and releases what their handlers give up', async () => {
  const records = memoryStore();
  const receiver = receiverOf({
    store: records,
    async onSuccess(_callback, { signal }) {
      await once(signal, 'abort');
      throw signal.reason;
    },
  });
  const callback = transferSucceeded();
  const running = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(0);
  const closed = receiver.close({ timeoutMs: 500 });
  await vi.advanceTimersByTimeAsync(500);
  expect(await running).toMatchObject({ outcome: 'handler_failed', error: { code: 'CLOSING' } });
  expect(await closed).toEqual({ unfinished: 0, ids: [] });
  expect(await receiverOf({ store: records }).receive(callback)).toMatchObject({ outcome: 'processed' });
});

test('close leaves handlers that ignore their signals to their leases, and names their callbacks', async () => {
  const logger = recordingLogger();
  const records = memoryStore();
  const receiver = receiverOf({ store: records, logger, onSuccess: never });
  const ids = ['first', 'second'];
  for (const id of ids) void receiver.receive(transferSucceeded({ id }));
  await vi.advanceTimersByTimeAsync(0);
  const closed = receiver.close({ timeoutMs: 500 });
  await vi.advanceTimersByTimeAsync(2_500);
  expect(await closed).toEqual({ unfinished: 2, ids });
  expect(logger.lines).toEqual([
    {
      level: 'warn',
      message:
        'The receiver has closed, and 2 handlers, recordings or functions of `afterCommit` still run. A handler may run again when its lease expires, within 15000 ms: compare these payouts with your books.',
      details: { ids },
    },
  ]);
  const elsewhere = receiverOf({ store: records, inFlightWaitMs: 20_000 });
  const next = elsewhere.receive(transferSucceeded({ id: 'first' }));
  await vi.advanceTimersByTimeAsync(15_000);
  expect(await next).toMatchObject({ outcome: 'processed' });
});

test('close waits for a success that is being recorded, until its timeout', async () => {
  let isDown = true;
  const store = storeWith({
    granted: (claim) => ({ settle: () => (isDown ? Promise.reject(new Error('down')) : claim.settle()) }),
  });
  const receiver = receiverOf({ store });
  await receiver.receive(transferSucceeded());
  const closed = receiver.close();
  await vi.advanceTimersByTimeAsync(5_000);
  isDown = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await closed).toEqual({ unfinished: 0, ids: [] });

  isDown = true;
  const other = receiverOf({ store });
  await other.receive(transferSucceeded());
  const gaveUp = other.close({ timeoutMs: 0 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await gaveUp).toMatchObject({ unfinished: 1 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(vi.getTimerCount()).toBe(0);
});

test('close refuses deliveries that wait, without a pause, and those whose claim is granted meanwhile', async () => {
  const records = memoryStore();
  const arrival = later();
  const onSuccess = vi.fn();
  const callback = transferSucceeded();
  void receiverOf({ store: records, onSuccess: never }).receive(callback);
  const receiver = receiverOf({
    store: {
      claim: async (key, request) => {
        if (key !== callback.data.id) await arrival.promise;
        return records.claim(key, request);
      },
    },
    onSuccess,
  });
  const waiting = [receiver.receive(callback), receiver.receive(callback)];
  const other = transferSucceeded();
  const claiming = receiver.receive(other);
  await vi.advanceTimersByTimeAsync(10);
  const closed = receiver.close();
  for (const outcome of await Promise.all(waiting)) expect(outcome).toMatchObject({ outcome: 'closing', waitedMs: 10 });
  arrival.resolve();
  expect(await claiming).toMatchObject({ outcome: 'closing' });
  expect(await closed).toEqual({ unfinished: 0, ids: [] });
  expect(onSuccess).not.toHaveBeenCalled();
  expect(await receiverOf({ store: records }).receive(other)).toMatchObject({ outcome: 'processed' });
});

test('close refuses an invalid timeout', async () => {
  await expect(receiverOf().close({ timeoutMs: -1 })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'Expected `timeoutMs` to be a whole number from 0 to 2147483647, got -1.',
  });
});
