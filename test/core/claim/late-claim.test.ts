import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf, storeWith } from '../support.js';

let aheadMs = 0;

beforeEach(() => {
  fakeClock();
  aheadMs = 0;
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs);
  onTestFinished(() => {
    clock.mockRestore();
  });
});

/**
 * Holds up the reply to the first claim until `lateMs` have passed: as when the process is stopped, no timer runs
 * meanwhile.
 */
function heldUp(records: CallbackStore, lateMs: number): CallbackStore {
  let isFirst = true;
  return {
    async claim(key, request) {
      const reply = await records.claim(key, request);
      if (isFirst) aheadMs += lateMs;
      isFirst = false;
      return reply;
    },
  };
}

test.each([
  ['another', 5_000, 0],
  ['another', 5_001, 1],
  ['a transactional', 15_000, 0],
  ['a transactional', 15_001, 1],
])(
  'a claim of %s store whose reply is read after %i ms is renewed %i times before the handler',
  async (kind, lateMs, times) => {
    const renew = vi.fn(() => Promise.resolve(true));
    const transactional = kind === 'a transactional';
    const store = { ...heldUp(storeWith({ granted: () => ({ renew }) }), lateMs), transactional };
    const onSuccess = vi.fn(() => {
      expect(renew).toHaveBeenCalledTimes(times);
    });
    expect(await receiverOf({ store, onSuccess }).receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  },
);

test('a lease is renewed again if the reply to its renewal is read late as well', async () => {
  const renew = vi
    .fn(() => Promise.resolve(true))
    .mockImplementationOnce(() => {
      aheadMs += 5_001;
      return Promise.resolve(true);
    });
  const store = heldUp(storeWith({ granted: () => ({ renew }) }), 5_001);
  expect(await receiverOf({ store }).receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
  expect(renew).toHaveBeenCalledTimes(2);
});

test('a claim whose reply is read late is a duplicate if another delivery has handled, meanwhile or before', async () => {
  const records = memoryStore();
  const callback = transferSucceeded();
  const stolen = storeWith({ granted: (claim) => ({ renew: async () => (await claim.settle(), false) }) }, records);
  const onSuccess = vi.fn();
  for (const store of [stolen, records]) {
    const receiver = receiverOf({ store: heldUp(store, 20_000), onSuccess });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  }
  expect(onSuccess).not.toHaveBeenCalled();
});

test('a lost claim is released if the claim that follows fails, because the store may have granted that', async () => {
  const records = memoryStore();
  let claims = 0;
  const losesReply: CallbackStore['claim'] = async (key, request) => {
    claims += 1;
    const reply = await records.claim(key, request);
    if (claims === 2) throw new Error('connection reset');
    return reply;
  };
  const store = storeWith({ claim: losesReply, granted: () => ({ renew: () => Promise.resolve(false) }) });
  const callback = transferSucceeded();
  expect(await receiverOf({ store: heldUp(store, 5_001) }).receive(callback)).toMatchObject({
    outcome: 'store_unavailable',
    error: { message: 'connection reset' },
  });
  await vi.advanceTimersByTimeAsync(0);
  expect(claims).toBe(2);
  expect(await records.read(callback.data.id)).toEqual({ state: 'free' });
});

test('a receiver that closes while a late grant turns out to be lost keeps no claim', async () => {
  const records = memoryStore();
  let close = (): unknown => undefined;
  const renew = (): Promise<boolean> => (close(), Promise.resolve(false));
  const receiver = receiverOf({ store: heldUp(storeWith({ granted: () => ({ renew }) }, records), 20_000) });
  close = () => receiver.close({ timeoutMs: 0 });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'closing' });
  expect(await records.read(callback.data.id)).toEqual({ state: 'free' });
});

const down = new Error('down');
const rejects = () => Promise.reject(down);
const throws = () => {
  throw down;
};

test.each<[how: string, what: string, renew: () => unknown, releasing: () => unknown]>([
  ['rejects', 'resolves', rejects, () => Promise.resolve()],
  ['throws', 'throws', throws, throws],
  ['throws', 'returns no promise', throws, () => null],
])('a late claim whose `renew` %s is released by a `release` that %s', async (_how, _what, renew, releasing) => {
  const release = vi.fn(releasing);
  const store = heldUp(storeWith({ granted: () => ({ renew, release }) as never }), 20_000);
  expect(await receiverOf({ store }).receive(transferSucceeded())).toMatchObject({
    outcome: 'store_unavailable',
    error: down,
  });
  expect(release).toHaveBeenCalledTimes(1);
});
