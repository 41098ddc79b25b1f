import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, type CallbackStore, type Claim } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../../support/helpers/containing.js';
import { recordingLogger } from '../../support/helpers/logger.js';
import { fakeClock, later, never, noteTimers, receiverOf, runUntilTold, storeWith } from '../support.js';

beforeEach(fakeClock);

/**
 * A memory store, and the claims that it has granted. It loses one that is released, as a Redis does that is restarted
 * empty.
 */
function forgetful(): { store: CallbackStore; granted: Claim[] } {
  const granted: Claim[] = [];
  return { store: storeWith({ granted: (claim) => (granted.push(claim), {}) }), granted };
}

test('a lease that the store has forgotten is claimed again, so that a copy still finds the handler running', async () => {
  const { store, granted } = forgetful();
  const work = runUntilTold();
  const { onSuccess } = work;
  const logger = recordingLogger();
  const receiver = receiverOf({ store, onSuccess, logger });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(1_000);
  await granted[0]?.release();
  await vi.advanceTimersByTimeAsync(4_000);
  const copy = receiverOf({ store, onSuccess, inFlightWaitMs: 0 }).receive(callback);
  expect(await copy).toMatchObject({ outcome: 'in_progress' });
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed', overlapped: false });
  expect(work.signal?.aborted).toBe(false);
  expect(onSuccess).toHaveBeenCalledTimes(1);
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'The lease of a callback had lapsed under its handler; it was claimed again.',
  ]);
});

test('a lease that another delivery has claimed is lost: the signal aborts, and the log names the last error', async () => {
  const noPermission = new Error("NOPERM this user has no permissions to run the 'pexpire' command");
  const renew = vi.fn(() => Promise.resolve(false)).mockRejectedValueOnce(noPermission);
  const logger = recordingLogger();
  const work = runUntilTold();
  const store = storeWith({ granted: () => ({ renew }) });
  const receiver = receiverOf({ store, logger, onSuccess: work.onSuccess });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(5_000);
  const cause = { err: { message: noPermission.message } };
  expect(logger.lines).toMatchObject([{ level: 'warn', message: containing('could not be renewed'), details: cause }]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(work.signal?.reason).toMatchObject({ code: 'LEASE_LOST' });
  expect(logger.lines.at(-1)).toMatchObject({
    level: 'error',
    message: containing('was lost'),
    details: { id: callback.data.id, ...cause },
  });
  work.resolve();
  await delivery;
});

test('a lease that is claimed again after its handler has ended is released', async () => {
  const { store, granted } = forgetful();
  const records = vi.spyOn(store, 'claim');
  const gate = later();
  const work = later();
  const receiver = receiverOf({ store, onSuccess: () => work.promise });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(1_000);
  await granted[0]?.release();
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

test('a lease of a transactional store is not claimed again: it is lost with its transaction', async () => {
  const store = storeWith({ transactional: true, granted: () => ({ renew: () => Promise.resolve(false) }) });
  const claim = vi.spyOn(store, 'claim');
  const work = runUntilTold();
  const logger = recordingLogger();
  const callback = transferSucceeded();
  const delivery = receiverOf({ store, logger, onSuccess: work.onSuccess }).receive(callback);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(work.signal?.reason).toMatchObject({ code: 'LEASE_LOST' });
  // No renewal has failed, so no error is named.
  expect(logger.lines.map(({ details }) => details)).toStrictEqual([
    { delivery: expect.any(String) as string, id: callback.data.id },
  ]);
  work.resolve();
  await delivery;
  expect(claim).toHaveBeenCalledTimes(1);
});

test('renewals that fail, one after the other, are one warning, and none once the handler has ended', async () => {
  const logger = recordingLogger();
  const work = later();
  const down = (): Promise<never> => Promise.reject(new Error('down'));
  const store = storeWith({ granted: () => ({ renew: down, settle: down }) });
  const receiver = receiverOf({ store, logger, onSuccess: () => work.promise });
  void receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(15_000);
  expect(logger.lines).toMatchObject([{ level: 'warn', details: { err: { message: 'down' } } }]);

  const recording = recordingLogger();
  await receiverOf({ store, logger: recording }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(15_000);
  expect(recording.lines).toMatchObject([{ level: 'error', message: containing('but not recorded') }]);
});

test('after a renewal that succeeds, an earlier failure is not the cause of a loss, and a later one is logged', async () => {
  const work = later();
  const renew = vi.fn(() => Promise.resolve(true));
  for (const message of ['first', 'second']) {
    renew.mockRejectedValueOnce(new Error(message)).mockResolvedValueOnce(true);
  }
  renew.mockResolvedValueOnce(false);
  const logger = recordingLogger();
  const store = storeWith({ granted: () => ({ renew }) });
  void receiverOf({ store, logger, handlerTimeoutMs: 60_000, onSuccess: () => work.promise }).receive(
    transferSucceeded(),
  );
  await vi.advanceTimersByTimeAsync(25_000);
  const causes = logger.lines.map(({ details }) => (details as { err?: { message: string } }).err?.message);
  expect(causes).toEqual(['first', 'second', undefined]);
});

test('a success that is not recorded yet keeps its claim, and does not claim again', async () => {
  let isDown = true;
  const records = memoryStore();
  const claim = vi.fn<CallbackStore['claim']>((key, request) => records.claim(key, request));
  const store = storeWith({
    claim,
    granted: (claim) => ({ settle: () => (isDown ? Promise.reject(new Error('down')) : claim.settle()) }),
  });
  const callback = transferSucceeded();
  const logger = recordingLogger();
  await receiverOf({ store, logger }).receive(callback);
  // Longer than a lease is renewed for a handler: it is six times handlerTimeoutMs.
  await vi.advanceTimersByTimeAsync(150_000);
  expect(logger.lines).toHaveLength(1);
  const elsewhere = receiverOf({ store: records, inFlightWaitMs: 0 });
  expect(await elsewhere.receive(callback)).toMatchObject({ outcome: 'in_progress' });
  isDown = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await elsewhere.receive(callback)).toMatchObject({ outcome: 'duplicate' });

  const lapsed = storeWith({
    claim,
    granted: () => ({ renew: () => Promise.resolve(false), settle: () => Promise.reject(new Error('down')) }),
  });
  const other = transferSucceeded();
  const lapsedLogger = recordingLogger();
  await receiverOf({ store: lapsed, logger: lapsedLogger }).receive(other);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(claim.mock.calls.map(([id]) => id)).toEqual([callback.data.id, other.data.id]);
  expect(lapsedLogger.lines, 'no lease is reported as lost').toHaveLength(1);
});

test('a success that is recorded on retry, after its lease has passed on, is reported as an error', async () => {
  const settle = vi.fn(() => Promise.resolve({ overlapped: true })).mockRejectedValueOnce(new Error('down'));
  const logger = recordingLogger();
  const { id } = transferSucceeded().data;
  await receiverOf({ store: storeWith({ granted: () => ({ settle }) }), logger }).receive(transferSucceeded({ id }));
  await vi.advanceTimersByTimeAsync(100);
  expect(logger.lines.slice(1)).toMatchObject([
    { level: 'error', message: containing('handled twice'), details: { id } },
  ]);
});

test('a renewal that waits for another is not sent once the handler has ended', async () => {
  const slow = async <T>(reply: T): Promise<T> => {
    await new Promise((resolve) => setTimeout(resolve, 1_900));
    return reply;
  };
  const renew = vi.fn(() => slow(false));
  const claim = vi
    .fn<CallbackStore['claim']>(() => slow({ state: 'in_progress' }))
    .mockImplementationOnce(memoryStore().claim);
  const work = later();
  const store = storeWith({ claim, granted: () => ({ renew }) });
  // The next renewal is due after 3 s, while the first one still claims again.
  const logger = recordingLogger();
  const receiver = receiverOf({ store, logger, leaseMs: 9_000, onSuccess: () => work.promise });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(6_100);
  work.reject(new Error('no'));
  await delivery;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(renew).toHaveBeenCalledTimes(1);
  // The claim was refused after the end: nothing was lost.
  expect(logger.lines.map(({ message }) => message)).toEqual(['The handler of a callback failed.']);
});

test('a handler that succeeds after it was abandoned is recorded once, and disturbs no other delivery', async () => {
  const settle = vi.fn(() => Promise.reject(new Error('down')));
  const work = later();
  const onSuccess = vi.fn(() => new Promise(() => undefined)).mockReturnValueOnce(work.promise);
  const receiver = receiverOf({ store: storeWith({ granted: () => ({ settle }) }), onSuccess });
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

const settle = () => Promise.reject(new Error('down'));

test.each([
  // The first pause, and the next renewal.
  ['recording in the background', 'processed', 100, { store: storeWith({ granted: () => ({ settle }) }) }],
  ['the lease of a handler that has timed out', 'timed_out', 5_000, { handlerTimeoutMs: 20, onSuccess: never }],
])('%s does not keep the process alive', async (_what, outcome, timerMs, options) => {
  vi.useRealTimers();
  const keepAlive = noteTimers();
  const receiver = receiverOf({ storeTimeoutMs: 20, ...options });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome });
  expect(keepAlive(timerMs)).toEqual([false]);
  await receiver.close({ timeoutMs: 0 });
});

// A store may tell by `ended` that a claim has ended.

test('a handler whose claim has ended learns it immediately from a store that knows, and the lease is renewed no longer', async () => {
  const end = later();
  const renew = vi.fn(() => Promise.resolve(true));
  const work = runUntilTold();
  const logger = recordingLogger();
  const store = storeWith({ granted: () => ({ ended: end.promise, renew }) });
  const receiver = receiverOf({ store, logger, onSuccess: work.onSuccess });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(100);
  expect(work.signal?.aborted).toBe(false);
  end.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(work.signal?.reason).toMatchObject({ code: 'LEASE_LOST' });
  expect(logger.lines).toMatchObject([{ level: 'error', message: containing('was lost') }]);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(renew).not.toHaveBeenCalled();
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed' });
});

/** A memory store whose claims have this as `ended`. */
function storeThatEnds(get: () => unknown): CallbackStore {
  const records = memoryStore();
  return {
    async claim(key, request) {
      const reply = await records.claim(key, request);
      if (reply.state !== 'claimed') return reply;
      return { ...reply, claim: Object.defineProperty({ ...reply.claim }, 'ended', { get }) };
    },
  };
}

const throwing = (): never => {
  throw new Error('no end');
};

test.each<[string, () => unknown]>([
  ['no promise', () => true],
  ['null', () => null],
  ['a function', () => throwing],
  ['a getter that throws', throwing],
  ['an object whose `then` is none', () => ({ then: true })],
  ['an object whose `then` throws', () => ({ then: throwing })],
  ['an object whose `then` cannot be read', () => Object.defineProperty({}, 'then', { get: throwing })],
  ['a promise that rejects', () => Promise.reject(new Error('no end'))],
  ['a promise that never resolves', never],
])('a handler is not aborted by a claim that has %s as `ended`', async (_what, get) => {
  const logger = recordingLogger();
  const work = runUntilTold();
  const delivery = receiverOf({ store: storeThatEnds(get), logger, onSuccess: work.onSuccess }).receive(
    transferSucceeded(),
  );
  await vi.advanceTimersByTimeAsync(6_000);
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed' });
  expect([work.signal?.aborted, logger.lines]).toEqual([false, []]);
});

test('the end of a claim is not that of the one that was claimed again, nor of one whose handler has succeeded', async () => {
  const ends = [later(), later()];
  let claims = 0;
  const granted = (): Partial<Claim> => {
    const ended = ends[(claims += 1) - 1]?.promise;
    return { ended, ...(claims === 1 && { renew: () => Promise.resolve(false) }), settle: () => Promise.reject(down) };
  };
  const down = new Error('down');
  const records = memoryStore();
  const store = storeWith({
    granted,
    claim: (key, request) => records.claim(claims === 0 ? key : `${key} again`, request),
  });
  const logger = recordingLogger();
  const work = runUntilTold();
  const delivery = receiverOf({ store, logger, onSuccess: work.onSuccess }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(5_000);
  expect(claims).toBe(2);
  ends[0]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed', error: down });
  ends[1]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(work.signal?.aborted).toBe(false);
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'The lease of a callback had lapsed under its handler; it was claimed again.',
    containing('but not recorded'),
  ]);
});
