import { beforeEach, expect, test, vi } from 'vitest';
import type { HandlerContext, StoreRecord, TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/helpers/containing.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, later, never, receiverOf, runUntilTold, storeWith } from './support.js';

beforeEach(fakeClock);

test('the signal has aborted when a handler first reads it after its deadline', async () => {
  const work = later();
  const read = vi.fn();
  const onSuccess = async (_callback: unknown, context: HandlerContext): Promise<void> => {
    await work.promise;
    read(context.signal.reason);
  };
  const delivery = receiverOf({ onSuccess }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(20_000);
  await delivery;
  work.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(read.mock.calls).toMatchObject([[{ code: 'HANDLER_TIMEOUT' }]]);
});

test('the signal of a late handler aborts, its lease is kept, and its success counts', async () => {
  const work = runUntilTold();
  const logger = recordingLogger();
  const receiver = receiverOf({ logger, onSuccess: work.onSuccess });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(19_999);
  expect(work.signal?.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await delivery).toMatchObject({
    outcome: 'timed_out',
    error: { code: 'HANDLER_TIMEOUT' },
    durationMs: 20_000,
  });
  expect(work.signal?.reason).toMatchObject({ code: 'HANDLER_TIMEOUT' });

  const meanwhile = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(40_000);
  expect(await meanwhile).toMatchObject({ outcome: 'in_progress' });

  work.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(logger.lines.at(-1)).toMatchObject({ level: 'warn', message: containing('handled late') });
});

test('the deadline of a handler ends with it: its recording may take longer', async () => {
  const recorded = later();
  const store = storeWith({ granted: (claim) => ({ settle: () => recorded.promise.then(() => claim.settle()) }) });
  const work = runUntilTold();
  work.resolve();
  const delivery = receiverOf({ store, onSuccess: work.onSuccess, handlerTimeoutMs: 1_000 }).receive(
    transferSucceeded(),
  );
  await vi.advanceTimersByTimeAsync(1_500);
  recorded.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed', durationMs: 1_500 });
  expect(work.signal?.aborted).toBe(false);
});

test('a late handler that fails frees the callback', async () => {
  const work = later();
  const outcomes: TransferCallbackOutcome[] = [];
  const onSuccess = vi.fn().mockReturnValueOnce(work.promise);
  const receiver = receiverOf({ onSuccess, onOutcome: (outcome) => outcomes.push(outcome) });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(25_000);
  expect(await delivery).toMatchObject({ outcome: 'timed_out' });
  const error = new Error('too late');
  work.reject(error);
  await vi.advanceTimersByTimeAsync(0);
  expect(outcomes).toMatchObject([{ outcome: 'timed_out' }, { outcome: 'handler_failed', late: true, error }]);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
});

test('a lease is held for six deadlines at most; then it lapses, and a success is reported as overlapped', async () => {
  const work = later();
  const logger = recordingLogger();
  const outcomes: TransferCallbackOutcome[] = [];
  const onSuccess = vi.fn().mockReturnValueOnce(work.promise);
  const settled: object[] = [];
  const store = storeWith({
    granted: (claim) => ({
      async settle() {
        const handled = await claim.settle();
        settled.push(handled);
        return handled;
      },
    }),
  });
  const onOutcome = (outcome: TransferCallbackOutcome): unknown => outcomes.push(outcome);
  const read = (): Promise<StoreRecord> => Promise.resolve({ state: 'free' });
  const receiver = receiverOf({ store: { ...store, read }, logger, onSuccess, onOutcome });
  const callback = transferSucceeded();
  void receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(120_000);
  const during = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await during).toMatchObject({ outcome: 'in_progress' });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
  expect(logger.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('sixfold'));
  expect(await receiver.inspect(callback.data.id)).toEqual({ state: 'free', here: { sinceMs: 145_000 } });
  work.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(settled).toEqual([{ overlapped: false }, { overlapped: true }]);
  expect(onSuccess).toHaveBeenCalledTimes(2);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['timed_out', 'in_progress', 'processed', 'processed']);
  expect(outcomes.at(-1)).toMatchObject({ late: true, overlapped: true, id: callback.data.id });
  expect(logger.lines.at(-1)).toMatchObject({ level: 'error', details: { late: true, overlapped: true } });
});

test('one renewal that fails or hangs does not end the lease', async () => {
  const renewals = vi.fn().mockRejectedValueOnce(new Error('down')).mockImplementationOnce(never);
  const work = later();
  const store = storeWith({
    granted: (claim) => ({ renew: () => (renewals() as Promise<boolean> | undefined) ?? claim.renew() }),
  });
  const receiver = receiverOf({ store, onSuccess: () => work.promise });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(14_999);
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed', overlapped: false });
});
