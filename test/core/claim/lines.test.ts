import { beforeEach, expect, test, vi } from 'vitest';
import {
  memoryStore,
  type CallbackStore,
  type TransferCallback,
  type TransferCallbackOutcome,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, never, receiverOf, slowStore, storeWith } from '../support.js';

beforeEach(fakeClock);

/** Makes a hundred deliveries concurrently. */
function receiveCopies(
  receiver: TransferCallbackReceiver,
  callback: TransferCallback,
): Promise<TransferCallbackOutcome[]> {
  return Promise.all(Array.from({ length: 100 }, () => receiver.receive(callback)));
}

test('a delivery that meets a running handler is a duplicate once that succeeds', async () => {
  const work = later();
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const onSuccess = vi.fn(() => work.promise);
  const deliveries = receiveCopies(receiverOf({ store, onSuccess }), transferSucceeded());
  await vi.advanceTimersByTimeAsync(4_000);
  work.resolve();
  const [first, ...others] = await deliveries;
  expect(first).toMatchObject({ outcome: 'processed', waitedMs: 0 });
  for (const other of others) expect(other).toMatchObject({ outcome: 'duplicate', durationMs: 4_000, waitedMs: 4_000 });
  expect(onSuccess).toHaveBeenCalledTimes(1);
  expect(claim, 'the copies ask the store once').toHaveBeenCalledTimes(1);
});

test('when the handler fails, the next copy runs it in the same moment, and the others go on waiting', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const onSuccess = vi.fn().mockRejectedValueOnce(new Error('first')).mockRejectedValueOnce(new Error('second'));
  const deliveries = await receiveCopies(receiverOf({ store, onSuccess }), transferSucceeded());
  const outcomes = deliveries.map(({ outcome }) => outcome);
  expect(outcomes.slice(0, 4)).toEqual(['handler_failed', 'handler_failed', 'processed', 'duplicate']);
  expect(new Set(outcomes.slice(3))).toEqual(new Set(['duplicate']));
  expect(onSuccess).toHaveBeenCalledTimes(3);
  expect(claim).toHaveBeenCalledTimes(3);
});

test.each([0, 700])('a waiting delivery ends as in progress after inFlightWaitMs of %i', async (inFlightWaitMs) => {
  const receiver = receiverOf({ onSuccess: never, inFlightWaitMs });
  const callback = transferSucceeded();
  void receiver.receive(callback);
  const second = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(inFlightWaitMs);
  expect(await second).toMatchObject({ outcome: 'in_progress', durationMs: inFlightWaitMs });
});

test('a waiting delivery asks the store with growing pauses, and tells it all times and what people search for', async () => {
  const startedAt = performance.now();
  const askedAfter: number[] = [];
  const claim = vi.fn<CallbackStore['claim']>(() => {
    askedAfter.push(performance.now() - startedAt);
    return Promise.resolve({ state: 'in_progress' });
  });
  const callback = transferSucceeded();
  const receiver = receiverOf({ store: { claim }, inFlightWaitMs: 3_000, handlerTimeoutMs: 7_000 });
  const received = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(3_000);
  const { outcome, delivery } = await received;
  expect(outcome).toBe('in_progress');
  expect(askedAfter).toEqual([0, 50, 150, 350, 750, 1_550, 2_550, 3_000]);
  const [[id, request] = []] = claim.mock.calls;
  expect([id, request]).toEqual([
    callback.data.id,
    {
      token: delivery,
      fingerprint: expect.any(String) as string,
      event: callback.event,
      externalId: callback.data.externalId,
      leaseMs: 15_000,
      retentionMs: 604_800_000,
      timeoutMs: 2_000,
      queueMs: 3_000,
      // Six times `handlerTimeoutMs`, and the last lease.
      maxHeldMs: 57_000,
    },
  ]);
  // As long as the delivery may still wait, and at least as long as one request may take.
  const queueMs = [3_000, 2_950, 2_850, 2_650, 2_250, 2_000, 2_000, 2_000];
  expect(claim.mock.calls.map(([, each]) => each)).toEqual(queueMs.map((each) => ({ ...request, queueMs: each })));
});

test('a copy with other facts is a conflict, although it never asked the store', async () => {
  const receiver = receiverOf();
  const callback = transferSucceeded();
  const other = transferSucceeded({ id: callback.data.id, externalId: callback.data.externalId, amount: 1 });
  const [first, second] = await Promise.all([receiver.receive(callback), receiver.receive(other)]);
  expect(first).toMatchObject({ outcome: 'processed' });
  expect(second).toMatchObject({ outcome: 'conflict', recorded: { amount: 15_000 }, received: { amount: 1 } });
});

test('while another process holds the claim, one copy asks for all, each until its own time is up', async () => {
  const store = memoryStore();
  const callback = transferSucceeded();
  const work = later();
  void receiverOf({ store, onSuccess: () => work.promise }).receive(callback);

  const claim = vi.spyOn(store, 'claim');
  const receiver = receiverOf({ store, inFlightWaitMs: 3_000 });
  const early = receiveCopies(receiver, callback);
  await vi.advanceTimersByTimeAsync(2_000);
  const late = receiveCopies(receiver, callback);
  await vi.advanceTimersByTimeAsync(1_000);
  for (const outcome of await early) {
    expect(outcome).toMatchObject({ outcome: 'in_progress', durationMs: 3_000, waitedMs: 3_000 });
  }
  work.resolve();
  await vi.advanceTimersByTimeAsync(1_000);
  for (const { outcome } of await late) expect(outcome).toBe('duplicate');
  expect(claim.mock.calls.length).toBeLessThan(15);
});

const down = new Error('connection refused');

test.each([
  ['rejects', () => Promise.reject(down)],
  [
    'throws',
    () => {
      throw down;
    },
  ],
])('all copies learn at the same time that the store %s, and no handler runs', async (_how, fail) => {
  const claim = vi.fn(fail);
  const onSuccess = vi.fn();
  for (const outcome of await receiveCopies(receiverOf({ store: { claim }, onSuccess }), transferSucceeded())) {
    expect(outcome).toMatchObject({ outcome: 'store_unavailable', error: down });
  }
  expect(claim).toHaveBeenCalledTimes(1);
  expect(onSuccess).not.toHaveBeenCalled();
});

test('a copy that may not wait for another delivery waits for the reply of the store', async () => {
  const records = memoryStore();
  const callback = transferSucceeded();
  await receiverOf({ store: records }).receive(callback);
  const slow = slowStore(() => new Promise((resolve) => setTimeout(resolve, 500)), records);
  const receiver = receiverOf({ store: slow, inFlightWaitMs: 0 });
  const deliveries = [receiver.receive(callback), receiver.receive(callback)];
  await vi.advanceTimersByTimeAsync(500);
  expect((await Promise.all(deliveries)).map(({ outcome }) => outcome)).toEqual(['duplicate', 'duplicate']);
});

test('a copy whose time is up before the store grants the claim does not wait for its handler', async () => {
  const slow = slowStore(() => new Promise((resolve) => setTimeout(resolve, 500)));
  const receiver = receiverOf({ store: slow, inFlightWaitMs: 100, onSuccess: never });
  const callback = transferSucceeded();
  void receiver.receive(callback);
  const copy = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(500);
  expect(await copy).toMatchObject({ outcome: 'in_progress', durationMs: 500 });
});

test.each([
  ['could not be recorded', () => Promise.reject(new Error('down'))],
  ['was recorded', () => Promise.resolve({ overlapped: true })],
])('after a lost lease, a success that %s ends no wait, and only one copy asks', async (_how, settle) => {
  let isTaken = false;
  const records = memoryStore();
  // Another process holds the claim from then on.
  const renew = (): Promise<boolean> => Promise.resolve(!(isTaken = true));
  const claim = vi.fn<CallbackStore['claim']>(async (key, request) =>
    isTaken ? { state: 'in_progress' } : records.claim(key, request),
  );
  const work = later();
  const store = storeWith({ claim, granted: () => ({ renew, settle }) });
  const receiver = receiverOf({ store, onSuccess: () => work.promise });
  const callback = transferSucceeded();
  const first = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(0);
  const deliveries = Array.from({ length: 3 }, () => receiver.receive(callback));
  await vi.advanceTimersByTimeAsync(5_060);
  const asked = claim.mock.calls.length;
  work.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(await first).toMatchObject({ outcome: 'processed' });
  expect(claim).toHaveBeenCalledTimes(asked);
  await vi.advanceTimersByTimeAsync(5_000);
  const outcomes = (await Promise.all(deliveries)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['in_progress', 'in_progress', 'in_progress']);
  // One of them asks for all, with longer pauses each time.
  expect(claim).toHaveBeenCalledTimes(12);
});

test('a success that could not be recorded yet is known to the copies that come meanwhile', async () => {
  let isDown = true;
  const store = storeWith({
    granted: (claim) => ({
      settle: () => (isDown ? Promise.reject(new Error('down')) : claim.settle()),
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
  isDown = false;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await receiverOf({ store }).receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(onSuccess).toHaveBeenCalledTimes(1);
});

test('a copy that joins the line of a closing receiver is turned away', async () => {
  const callback = transferSucceeded();
  const confirmed = later<TransferCallback>();
  const work = later();
  const confirm = vi.fn(() => confirmed.promise).mockResolvedValueOnce(callback);
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

test.each([
  // Immediately, and after the first pause of 50 ms.
  [60, 2],
  // At the end, too, once 50 ms have passed.
  [100, 3],
])('copies whose time is up after %i ms ask the store %i times, not each once more', async (inFlightWaitMs, times) => {
  const claim = vi.fn<CallbackStore['claim']>(() => Promise.resolve({ state: 'in_progress' }));
  const deliveries = receiveCopies(receiverOf({ store: { claim }, inFlightWaitMs }), transferSucceeded());
  await vi.advanceTimersByTimeAsync(inFlightWaitMs);
  for (const { outcome } of await deliveries) expect(outcome).toBe('in_progress');
  expect(claim).toHaveBeenCalledTimes(times);
});

test('a copy that arrives while another copy runs the handler waits for it', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
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
  expect(claim).toHaveBeenCalledTimes(2);
});

test('a slow store is not asked again once the time of the delivery is up', async () => {
  const claim = vi.fn<CallbackStore['claim']>(async () => {
    await new Promise((resolve) => setTimeout(resolve, 60));
    return { state: 'in_progress' };
  });
  const delivery = receiverOf({ store: { claim }, inFlightWaitMs: 60 }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(60);
  expect(await delivery).toMatchObject({ outcome: 'in_progress', durationMs: 60 });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(claim).toHaveBeenCalledTimes(1);
});

test('a delivery that has waited, and then runs its handler, has waited until that began', async () => {
  const works = [later(), later()];
  let runs = 0;
  const onSuccess = (): Promise<void> | undefined => works[runs++]?.promise;
  const receiver = receiverOf({ onSuccess, handlerTimeoutMs: 2_000 });
  const callback = transferSucceeded();
  const [first, second] = [receiver.receive(callback), receiver.receive(callback)];
  await vi.advanceTimersByTimeAsync(1_000);
  works[0]?.reject(new Error('no'));
  expect(await first).toMatchObject({ outcome: 'handler_failed', waitedMs: 0, durationMs: 1_000 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await second).toMatchObject({ outcome: 'timed_out', waitedMs: 1_000, durationMs: 3_000 });
});
