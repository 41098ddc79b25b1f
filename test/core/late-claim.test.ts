import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, jumpingClock, receiverOf, storeWith } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('a claim whose reply is read late', () => {
  /** Holds up the reply to the first claim until `lateMs` have passed for everybody else. */
  function heldUp(records: CallbackStore, lateMs: number): CallbackStore {
    let first = true;
    return {
      async claim(key, request) {
        const reply = await records.claim(key, request);
        if (!first) return reply;
        first = false;
        // As when the process is stopped: none of its timers runs meanwhile.
        vi.setSystemTime(Date.now() + lateMs);
        moveClock(lateMs);
        return reply;
      },
    };
  }

  let moveClock: (ms: number) => void;

  beforeEach(() => {
    moveClock = jumpingClock();
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  test('a claim whose reply is read late is renewed before the handler runs', async () => {
    const renew = vi.fn(() => Promise.resolve(true));
    const store = heldUp(storeWith({ granted: () => ({ renew }) }), 5_001);
    const onSuccess = vi.fn(() => {
      expect(renew).toHaveBeenCalledTimes(1);
    });
    expect(await receiverOf({ store, onSuccess }).receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test('a late reply that the callback is settled makes the delivery a duplicate', async () => {
    const records = memoryStore();
    const callback = transferSucceeded();
    await receiverOf({ store: records }).receive(callback);
    expect(await receiverOf({ store: heldUp(records, 20_000) }).receive(callback)).toMatchObject({
      outcome: 'duplicate',
    });
  });

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
      expect(await receiverOf({ store }).receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
      expect(renew).toHaveBeenCalledTimes(times);
    },
  );

  test('a lease is renewed again if the reply to its renewal is read late as well', async () => {
    const renew = vi
      .fn(() => Promise.resolve(true))
      .mockImplementationOnce(() => {
        moveClock(5_001);
        return Promise.resolve(true);
      });
    const store = heldUp(storeWith({ granted: () => ({ renew }) }), 5_001);
    expect(await receiverOf({ store }).receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    expect(renew).toHaveBeenCalledTimes(2);
  });

  test('a claim whose reply is read late is a duplicate if another delivery has settled meanwhile', async () => {
    const records = memoryStore();
    const callback = transferSucceeded();
    const stolen: CallbackStore = {
      async claim(key, request) {
        const reply = await records.claim(key, request);
        if (reply.state !== 'claimed') return reply;
        const { claim } = reply;
        return { ...reply, claim: { ...claim, renew: async () => (await claim.settle(), false) } };
      },
    };
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: heldUp(stolen, 20_000), onSuccess });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    expect(onSuccess).not.toHaveBeenCalled();
  });

  test('a claim whose reply is read late is released if it cannot be renewed, and the delivery is store_unavailable', async () => {
    const error = new Error('down');
    const release = vi.fn(() => Promise.resolve());
    const store = heldUp(storeWith({ granted: () => ({ renew: () => Promise.reject(error), release }) }), 20_000);
    expect(await receiverOf({ store }).receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error,
    });
    expect(release).toHaveBeenCalledTimes(1);
  });
});
