// A store may tell by `ended` that a claim has ended.
import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, type CallbackStore, type Claim, type HandlerContext } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../../support/helpers/logger.js';
import { fakeClock, later, never, receiverOf, storeWith } from '../support.js';

beforeEach(fakeClock);

test('a handler whose claim has ended learns it immediately from a store that knows, and the lease is renewed no longer', async () => {
  const end = later();
  const renew = vi.fn(() => Promise.resolve(true));
  const work = later();
  const logger = recordingLogger();
  let signal: AbortSignal | undefined;
  const receiver = receiverOf({
    store: storeWith({ granted: () => ({ ended: end.promise, renew }) }),
    logger,
    onSuccess(_callback, context) {
      ({ signal } = context);
      return work.promise;
    },
  });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(100);
  expect(signal?.aborted).toBe(false);
  end.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(signal?.reason).toMatchObject({ code: 'LEASE_LOST' });
  expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('was lost') as string }]);
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
  const work = later();
  const onSuccess = vi.fn((_callback: unknown, { signal }: HandlerContext) => work.promise.then(() => signal.aborted));
  const delivery = receiverOf({ store: storeThatEnds(get), logger, onSuccess }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(6_000);
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed' });
  expect([await onSuccess.mock.results[0]?.value, logger.lines]).toEqual([false, []]);
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
  const work = later();
  const onSuccess = vi.fn((_callback: unknown, { signal }: HandlerContext) => work.promise.then(() => signal.aborted));
  const delivery = receiverOf({ store, logger, onSuccess }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(5_000);
  expect(claims).toBe(2);
  ends[0]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  work.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed', error: down });
  ends[1]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(await onSuccess.mock.results[0]?.value).toBe(false);
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'The lease of a callback had lapsed under its handler; it was claimed again.',
    expect.stringContaining('but not recorded'),
  ]);
});
