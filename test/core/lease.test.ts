import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, type CallbackStore, type HandlerContext } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, later, receiverOf, storeWith } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

/** A memory store that can lose its records, as a Redis does that is restarted empty. */
function forgetful(): CallbackStore & { loseRecords(): void } {
  let records = memoryStore();
  const leases = { renew: () => Promise.resolve(false) };
  return {
    loseRecords() {
      records = memoryStore();
    },
    async claim(key, request) {
      const own = records;
      const claim = await own.claim(key, request);
      if (claim.state !== 'claimed') return claim;
      const { lease } = claim;
      const renew = (): Promise<boolean> => (own === records ? lease.renew() : leases.renew());
      return { ...claim, lease: { ...lease, renew } };
    },
  };
}

describe('a lease', () => {
  test('a lease that the store has forgotten is claimed again, so that a copy still finds the handler running', async () => {
    const store = forgetful();
    const work = later();
    const logger = recordingLogger();
    const onSuccess = vi.fn((_callback: unknown, { signal }: HandlerContext) =>
      work.promise.then(() => signal.aborted),
    );
    const receiver = receiverOf({ store, onSuccess, logger });
    const callback = transferSucceeded();
    const delivery = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(1_000);
    store.loseRecords();
    await vi.advanceTimersByTimeAsync(4_000);
    const copy = receiverOf({ store, onSuccess, inFlightWaitMs: 0 }).receive(callback);
    expect(await copy).toMatchObject({ outcome: 'in_progress' });
    work.resolve();
    expect(await delivery).toMatchObject({ outcome: 'processed', overlapped: false });
    expect(await onSuccess.mock.results[0]?.value).toBe(false);
    expect(onSuccess).toHaveBeenCalledTimes(1);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'The lease of a transfer callback had lapsed under its handler; it was claimed again.',
    ]);
  });

  test('a lease that another delivery has claimed is lost: the signal aborts, and the log names the last error', async () => {
    const noPermission = new Error("NOPERM this user has no permissions to run the 'pexpire' command");
    const renew = vi.fn(() => Promise.resolve(false)).mockRejectedValueOnce(noPermission);
    const records = memoryStore();
    const store = storeWith({ lease: () => ({ renew }) }, records);
    const logger = recordingLogger();
    const work = later();
    let signal: AbortSignal | undefined;
    const receiver = receiverOf({
      store,
      logger,
      onSuccess(_callback, context) {
        ({ signal } = context);
        return work.promise;
      },
    });
    const callback = transferSucceeded();
    const delivery = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(logger.lines).toMatchObject([
      {
        level: 'warn',
        message: expect.stringContaining('could not be renewed') as string,
        details: { err: { message: noPermission.message } },
      },
    ]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(signal?.reason).toMatchObject({ code: 'LEASE_LOST' });
    expect(logger.lines.at(-1)).toMatchObject({
      level: 'error',
      message: expect.stringContaining('was lost') as string,
      details: { id: callback.data.id, err: { message: noPermission.message } },
    });
    work.resolve();
    await delivery;
  });

  test('a renewal that is refused after the success was recorded reports no lost lease', async () => {
    const logger = recordingLogger();
    const store = storeWith({
      lease: (lease) => ({
        settle: vi
          .fn(() => lease.settle())
          .mockImplementationOnce(async () => {
            await lease.settle();
            throw new Error('the reply was lost');
          })
          .mockRejectedValueOnce(new Error('down'))
          .mockRejectedValueOnce(new Error('down'))
          .mockRejectedValueOnce(new Error('down'))
          .mockRejectedValueOnce(new Error('down'))
          .mockRejectedValueOnce(new Error('down'))
          .mockRejectedValueOnce(new Error('down')),
      }),
    });
    const receiver = receiverOf({ store, logger });
    await receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(30_000);
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'A transfer callback was handled; recording it failed, and is retried until the receiver closes.',
      'A handled transfer callback was recorded on retry.',
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a lease that is claimed again after its handler has ended is released', async () => {
    const store = forgetful();
    const records = vi.spyOn(store, 'claim');
    const gate = later();
    const work = later();
    const receiver = receiverOf({ store, onSuccess: () => work.promise });
    const callback = transferSucceeded();
    const delivery = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(1_000);
    store.loseRecords();
    records.mockImplementationOnce(async (key, request) => {
      await gate.promise;
      return store.claim(key, request);
    });
    await vi.advanceTimersByTimeAsync(4_000);
    work.reject(new Error('no'));
    expect(await delivery).toMatchObject({ outcome: 'handler_failed' });
    gate.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(await receiverOf({ store, inFlightWaitMs: 0 }).receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('a lease of a transactional store is not claimed again: its transaction is gone', async () => {
    const records = memoryStore();
    const claim = vi.fn<CallbackStore['claim']>((key, request) => records.claim(key, request));
    const store = storeWith({ transactional: true, claim, lease: () => ({ renew: () => Promise.resolve(false) }) });
    const work = later();
    const delivery = receiverOf({ store, onSuccess: () => work.promise }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(5_000);
    work.resolve();
    await delivery;
    expect(claim).toHaveBeenCalledTimes(1);
  });
});

test('a handler that succeeds after it was abandoned is recorded once, and disturbs no other delivery', async () => {
  const settle = vi.fn(() => Promise.reject(new Error('down')));
  const work = later();
  const onSuccess = vi.fn(() => new Promise(() => undefined)).mockReturnValueOnce(work.promise);
  const receiver = receiverOf({ store: storeWith({ lease: () => ({ settle }) }), onSuccess });
  const outcomes = [receiver.receive(transferSucceeded()), receiver.receive(transferSucceeded())];
  await vi.advanceTimersByTimeAsync(0);
  const closed = receiver.close({ timeoutMs: 100 });
  await vi.advanceTimersByTimeAsync(2_100);
  expect(await closed).toMatchObject({ unfinished: 2 });
  work.resolve();
  expect(await outcomes[0]).toMatchObject({ outcome: 'processed', error: { message: 'down' } });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(settle).toHaveBeenCalledTimes(1);
});
