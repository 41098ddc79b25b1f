import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, type CallbackStore, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, never, receiverOf, storeWith } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

/** A store that counts its claims. */
function counting(store: CallbackStore = memoryStore()): CallbackStore & { claims: number } {
  const counted = {
    claims: 0,
    claim: (...request: Parameters<CallbackStore['claim']>) => {
      counted.claims += 1;
      return store.claim(...request);
    },
  };
  return counted;
}

const copies = 100;

describe('deliveries of one callback in one process', () => {
  test('a hundred copies ask the store once, and are duplicates in the moment that the handler succeeds', async () => {
    const work = later();
    const store = counting();
    const receiver = receiverOf({ store, onSuccess: () => work.promise });
    const callback = transferSucceeded();
    const deliveries = Array.from({ length: copies }, () => receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(3_000);
    work.resolve();
    const outcomes = await Promise.all(deliveries);
    expect(outcomes.filter(({ outcome }) => outcome === 'processed')).toHaveLength(1);
    expect(outcomes.filter(({ outcome }) => outcome === 'duplicate')).toHaveLength(copies - 1);
    expect(store.claims).toBe(1);
  });

  test('when the handler fails, the next copy runs it in the same moment, and the others go on waiting', async () => {
    const store = counting();
    const onSuccess = vi.fn().mockRejectedValueOnce(new Error('first')).mockRejectedValueOnce(new Error('second'));
    const receiver = receiverOf({ store, onSuccess });
    const callback = transferSucceeded();
    const deliveries = Array.from({ length: copies }, () => receiver.receive(callback));
    const outcomes = (await Promise.all(deliveries)).map(({ outcome }) => outcome);
    expect(outcomes.slice(0, 4)).toEqual(['handler_failed', 'handler_failed', 'processed', 'duplicate']);
    expect(new Set(outcomes.slice(3))).toEqual(new Set(['duplicate']));
    expect(onSuccess).toHaveBeenCalledTimes(3);
    expect(store.claims).toBe(3);
  });

  test('a copy with other facts is a conflict, although it never asked the store', async () => {
    const receiver = receiverOf();
    const callback = transferSucceeded();
    const other = transferSucceeded({ id: callback.data.id, externalId: callback.data.externalId, amount: 1 });
    const [first, second] = await Promise.all([receiver.receive(callback), receiver.receive(other)]);
    expect(first).toMatchObject({ outcome: 'processed' });
    expect(second).toMatchObject({ outcome: 'conflict', settled: { amount: 15_000 }, received: { amount: 1 } });
  });

  test('while another process holds the claim, one of them asks for all, each until its own time is up', async () => {
    const records = memoryStore();
    const callback = transferSucceeded();
    const work = later();
    void receiverOf({ store: records, onSuccess: () => work.promise }).receive(callback);

    const store = counting(records);
    const receiver = receiverOf({ store, inFlightWaitMs: 3_000 });
    const early = Array.from({ length: copies }, () => receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(2_000);
    const late = Array.from({ length: copies }, () => receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(1_000);
    for (const outcome of await Promise.all(early)) {
      expect(outcome).toMatchObject({ outcome: 'in_progress', durationMs: 3_000 });
    }
    work.resolve();
    await vi.advanceTimersByTimeAsync(1_000);
    for (const { outcome } of await Promise.all(late)) expect(outcome).toBe('duplicate');
    expect(store.claims).toBeLessThan(15);
  });

  test('all of them learn at the same time that the store fails', async () => {
    const error = new Error('connection refused');
    const store = counting({ claim: () => Promise.reject(error) });
    const receiver = receiverOf({ store });
    const callback = transferSucceeded();
    const outcomes = await Promise.all(Array.from({ length: copies }, () => receiver.receive(callback)));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ outcome: 'store_unavailable', error });
    expect(store.claims).toBe(1);
  });

  test('a copy that may not wait still takes the reply that the store owes', async () => {
    const records = memoryStore();
    const callback = transferSucceeded();
    await receiverOf({ store: records }).receive(callback);
    const slow: CallbackStore = {
      claim: async (key, request) => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        return records.claim(key, request);
      },
    };
    const receiver = receiverOf({ store: slow, inFlightWaitMs: 0 });
    const deliveries = [receiver.receive(callback), receiver.receive(callback)];
    await vi.advanceTimersByTimeAsync(500);
    expect((await Promise.all(deliveries)).map(({ outcome }) => outcome)).toEqual(['duplicate', 'duplicate']);
  });

  test('a handler that has lost its lease holds up no copy: the next one asks the store', async () => {
    const renew = vi.fn(() => Promise.resolve(false));
    const records = memoryStore();
    const lapsing: CallbackStore = {
      async claim(key, request) {
        const reply = await records.claim(key, request);
        if (reply.state !== 'claimed' || onSuccess.mock.calls.length > 0) return reply;
        return { ...reply, claim: { ...reply.claim, renew } };
      },
    };
    const onSuccess = vi.fn().mockImplementationOnce(never);
    const receiver = receiverOf({ store: lapsing, onSuccess, leaseMs: 9_000, inFlightWaitMs: 20_000 });
    const callback = transferSucceeded();
    void receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(0);
    const copy = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await copy).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(2);
  });

  test.each([
    ['could not be recorded', () => Promise.reject(new Error('down'))],
    ['was recorded', () => Promise.resolve({ overlapped: true })],
  ])('after a lost lease, a success that %s ends no wait, and only one copy asks', async (_how, settle) => {
    let isTaken = false;
    const records = memoryStore();
    const store = counting({
      async claim(key, request) {
        // Another process holds the claim from then on.
        if (isTaken) return { state: 'in_progress' };
        const reply = await records.claim(key, request);
        if (reply.state !== 'claimed') return reply;
        const renew = (): Promise<boolean> => Promise.resolve(!(isTaken = true));
        return { ...reply, claim: { ...reply.claim, renew, settle } };
      },
    });
    const work = later();
    const receiver = receiverOf({ store, onSuccess: () => work.promise });
    const callback = transferSucceeded();
    const first = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(0);
    const deliveries = Array.from({ length: 3 }, () => receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(5_060);
    const asked = store.claims;
    work.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(await first).toMatchObject({ outcome: 'processed' });
    expect(store.claims).toBe(asked);
    await vi.advanceTimersByTimeAsync(5_000);
    const outcomes = (await Promise.all(deliveries)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['in_progress', 'in_progress', 'in_progress']);
    // One of them asks for all, with longer pauses each time.
    expect(store.claims).toBe(12);
  });

  test('a success that could not be recorded yet is known to the copies that come meanwhile', async () => {
    let down = true;
    const store = storeWith({
      granted: (claim) => ({
        settle: () => (down ? Promise.reject(new Error('down')) : claim.settle()),
        renew: () => Promise.resolve(false),
      }),
    });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store, onSuccess });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', error: { message: 'down' } });
    // By now the lease has lapsed in the store, which would grant the claim again.
    await vi.advanceTimersByTimeAsync(16_000);
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    down = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await receiverOf({ store }).receive(callback)).toMatchObject({ outcome: 'duplicate' });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test('a copy that joins the line of a closing receiver is turned away', async () => {
    const callback = transferSucceeded();
    const confirmed = later<typeof callback>();
    const work = later();
    const confirm = vi.fn(() => confirmed.promise as Promise<TransferCallback>).mockResolvedValueOnce(callback);
    const receiver = receiverOf({ confirm, onSuccess: () => work.promise });
    const first = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(0);
    const second = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(0);
    const closed = receiver.close();
    confirmed.resolve(callback);
    await vi.advanceTimersByTimeAsync(0);
    expect(await second).toMatchObject({ outcome: 'closing', durationMs: 0 });
    work.resolve();
    expect(await first).toMatchObject({ outcome: 'processed' });
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
  });

  test('a store that queues gets time for it, however little a delivery may wait', async () => {
    const asked: unknown[] = [];
    const records = memoryStore();
    const store: CallbackStore = {
      transactional: true,
      async claim(key, request) {
        asked.push(request.queueMs);
        await new Promise((resolve) => setTimeout(resolve, 1_900));
        return records.claim(key, request);
      },
    };
    const delivery = receiverOf({ store, inFlightWaitMs: 0 }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(1_900);
    expect(await delivery).toMatchObject({ outcome: 'processed' });
    expect(asked).toEqual([2_000]);
  });

  test('a delivery waits for a connection as long as it may still wait, and at least for its one request', async () => {
    const asked: (number | undefined)[] = [];
    const store: CallbackStore = {
      claim(_key, request) {
        asked.push(request.queueMs);
        return Promise.resolve({ state: 'in_progress' });
      },
    };
    const delivery = receiverOf({ store, inFlightWaitMs: 3_000 }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(3_000);
    expect(await delivery).toMatchObject({ outcome: 'in_progress', durationMs: 3_000 });
    expect(asked).toEqual([3_000, 2_950, 2_850, 2_650, 2_250, 2_000, 2_000, 2_000]);
  });

  test('copies whose time is up do not each ask the store once more', async () => {
    const store = counting({ claim: () => Promise.resolve({ state: 'in_progress' }) });
    const receiver = receiverOf({ store, inFlightWaitMs: 60 });
    const callback = transferSucceeded();
    const deliveries = Array.from({ length: copies }, () => receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(60);
    for (const { outcome } of await Promise.all(deliveries)) expect(outcome).toBe('in_progress');
    // Immediately, and after the first pause of 50 ms.
    expect(store.claims).toBe(2);
  });

  test('a copy that arrives while another copy runs the handler waits for it', async () => {
    const records = memoryStore();
    const store = counting(records);
    const work = later();
    const onSuccess = vi.fn(() => work.promise).mockRejectedValueOnce(new Error('first'));
    const receiver = receiverOf({ store, onSuccess });
    const callback = transferSucceeded();
    const deliveries = [receiver.receive(callback), receiver.receive(callback)];
    expect((await deliveries[0])?.outcome).toBe('handler_failed');
    await vi.advanceTimersByTimeAsync(0);
    deliveries.push(receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(3_000);
    work.resolve();
    expect((await Promise.all(deliveries)).map(({ outcome }) => outcome).slice(1)).toEqual(['processed', 'duplicate']);
    expect(store.claims).toBe(2);
  });

  test('a slow store is not asked again once the time of the delivery is up', async () => {
    const store = counting({
      async claim() {
        await new Promise((resolve) => setTimeout(resolve, 60));
        return { state: 'in_progress' };
      },
    });
    const delivery = receiverOf({ store, inFlightWaitMs: 60 }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(60);
    expect(await delivery).toMatchObject({ outcome: 'in_progress', durationMs: 60 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(store.claims).toBe(1);
  });

  test('closing turns all of them away, without a pause', async () => {
    const records = memoryStore();
    const callback = transferSucceeded();
    void receiverOf({ store: records, onSuccess: never }).receive(callback);
    const receiver = receiverOf({ store: records });
    const deliveries = Array.from({ length: copies }, () => receiver.receive(callback));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
    for (const { outcome } of await Promise.all(deliveries)) expect(outcome).toBe('closing');
  });
});
