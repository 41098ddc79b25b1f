import { once } from 'node:events';
import { beforeEach, expect, test, vi } from 'vitest';
import {
  memoryStore,
  transferCallbackReceiver,
  type CallbackStore,
  type Claim,
  type HandlerContext,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, never } from './support.js';

beforeEach(fakeClock);

const conflict = new Error('conflict');

/** What a transaction has written. */
type Tx = string[];

/**
 * A store that begins a transaction anew after a conflict, and keeps in `committed` what its transactions have written.
 */
function restartingStore(changes: Partial<Claim<Tx>> = {}): { store: CallbackStore<Tx>; committed: Tx } {
  const claims = memoryStore();
  const committed: Tx = [];
  return {
    committed,
    store: {
      transactional: true,
      async claim(key, request) {
        const reply = await claims.claim(key, request);
        if (reply.state !== 'claimed') return reply;
        let tx: Tx = [];
        const claim: Claim<Tx> = {
          get tx() {
            return tx;
          },
          renew: () => reply.claim.renew(),
          settle() {
            committed.push(...tx);
            return reply.claim.settle();
          },
          restart(error) {
            tx = [];
            return Promise.resolve(error === conflict);
          },
          release: () => reply.claim.release(),
        };
        return { state: 'claimed', claim: Object.defineProperties(claim, Object.getOwnPropertyDescriptors(changes)) };
      },
    },
  };
}

function receiverOn(store: CallbackStore<Tx>, options: Partial<ReceiverOptions<TransferCallback, Tx>>) {
  return transferCallbackReceiver<TransferCallback, Tx>({
    store,
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
    ...options,
  });
}

/** Lets time pass until a delivery has ended. */
async function finish<T>(delivery: Promise<T>): Promise<T> {
  let isOver = false as boolean; // TypeScript does not see that the delivery sets it.
  void delivery.finally(() => (isOver = true));
  while (!isOver) await vi.advanceTimersByTimeAsync(100);
  return delivery;
}

test('a handler that meets conflicts runs again until it succeeds, and what it wrote before them is not kept', async () => {
  const { store, committed } = restartingStore();
  let runs = 0;
  const receiver = receiverOn(store, {
    onSuccess(_callback, { tx }) {
      tx.push(`run ${(runs += 1)}`);
      if (runs < 4) throw conflict;
    },
  });
  expect(await finish(receiver.receive(transferSucceeded()))).toMatchObject({ outcome: 'processed' });
  expect(committed).toEqual(['run 4']);
});

test('a handler whose success meets a conflict runs again, and only the last functions of afterCommit are called', async () => {
  const settle = vi.fn<Claim['settle']>().mockRejectedValueOnce(conflict).mockResolvedValue({ overlapped: false });
  const called: number[] = [];
  let runs = 0;
  const receiver = receiverOn(restartingStore({ settle }).store, {
    onSuccess(_callback, { afterCommit }) {
      const run = (runs += 1);
      afterCommit(() => called.push(run));
    },
  });
  expect(await finish(receiver.receive(transferSucceeded()))).toMatchObject({ outcome: 'processed' });
  await receiver.close();
  expect([settle.mock.calls.length, runs, called]).toEqual([2, 2, [2]]);
});

test('a handler that has succeeded does not run again, even on a store that would begin anew after any error', async () => {
  const onSuccess = vi.fn();
  const receiver = receiverOn(restartingStore({ restart: () => Promise.resolve(true) }).store, { onSuccess });
  expect(await finish(receiver.receive(transferSucceeded()))).toMatchObject({ outcome: 'processed' });
  expect(onSuccess).toHaveBeenCalledTimes(1);
});

test('the context of an earlier run adds nothing to the run that counts', async () => {
  const contexts: HandlerContext<Tx>[] = [];
  const called = vi.fn();
  const receiver = receiverOn(restartingStore().store, {
    onSuccess(_callback, context) {
      contexts.push(context);
      if (contexts.length === 1) throw conflict;
      expect(() => {
        contexts[0]?.afterCommit(called);
      }).toThrow('before the handler finishes');
    },
  });
  expect(await finish(receiver.receive(transferSucceeded()))).toMatchObject({ outcome: 'processed' });
  await receiver.close();
  expect(called).not.toHaveBeenCalled();
});

test('a handler that has begun anew keeps its claim: a copy waits for it', async () => {
  const release = vi.fn(() => Promise.resolve());
  const work = later();
  let runs = 0;
  const receiver = receiverOn(restartingStore({ release }).store, {
    async onSuccess() {
      if ((runs += 1) === 1) throw conflict;
      await work.promise;
    },
  });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  await vi.advanceTimersByTimeAsync(5_000);
  const copy = receiver.receive(callback);
  work.resolve();
  expect([await delivery, await copy]).toMatchObject([{ outcome: 'processed' }, { outcome: 'duplicate' }]);
  expect([runs, release.mock.calls.length]).toEqual([2, 0]);
});

test('the end of a transaction that was given up does not end a handler that runs again, and that of the new one does', async () => {
  const ends = [later(), later(), later()];
  let begun = 0;
  const changes = {
    get ended() {
      return ends[begun]?.promise;
    },
    restart: async () => {
      // While the store begins anew, and after that.
      if (begun === 0) ends[0]?.resolve();
      await Promise.resolve();
      begun += 1;
      return true;
    },
  };
  const signals: AbortSignal[] = [];
  const receiver = receiverOn(restartingStore(changes).store, {
    async onSuccess(_callback, { signal }) {
      signals.push(signal);
      if (signals.length < 3) throw conflict;
      await once(signal, 'abort');
    },
  });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(1_000);
  expect(signals).toHaveLength(3);
  ends[1]?.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(signals[2]?.aborted).toBe(false);
  ends[2]?.resolve();
  await finish(delivery);
  expect(signals[2]?.reason).toMatchObject({ code: 'LEASE_LOST' });
});

test.each([
  ['whose failure is no conflict', {}, new Error('no balance')],
  ['on a store without `restart`', { restart: undefined }, conflict],
  ['whose store cannot begin anew', { restart: () => Promise.reject(new Error('down')) }, conflict],
  ['whose store does not reply', { restart: never }, conflict],
])('a handler %s does not run again, and its claim is released', async (_, changes, error) => {
  const release = vi.fn(() => Promise.resolve());
  const onSuccess = vi.fn().mockRejectedValue(error);
  const receiver = receiverOn(restartingStore({ ...changes, release } as Partial<Claim<Tx>>).store, { onSuccess });
  expect(await finish(receiver.receive(transferSucceeded()))).toMatchObject({ outcome: 'handler_failed', error });
  expect([onSuccess.mock.calls.length, release.mock.calls.length]).toEqual([1, 1]);
});

test('conflicts end with the time of the handler: it is released, and the last of them is reported', async () => {
  const release = vi.fn(() => Promise.resolve());
  const onSuccess = vi.fn().mockRejectedValue(conflict);
  const receiver = receiverOn(restartingStore({ release }).store, { onSuccess, handlerTimeoutMs: 3_000 });
  const startedAt = performance.now();
  const outcome = await finish(receiver.receive(transferSucceeded()));
  expect(outcome).toMatchObject({ outcome: 'handler_failed', error: conflict });
  expect(performance.now() - startedAt).toBeLessThan(3_200);
  expect(onSuccess.mock.calls.length).toBeGreaterThan(3);
  expect(release).toHaveBeenCalledOnce();
});

test('before a handler runs again it pauses, at most twice as long each time, and at most a second', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(1);
  const startedAt: number[] = [];
  const onSuccess = (): Promise<never> => {
    startedAt.push(performance.now());
    return Promise.reject(conflict);
  };
  await finish(
    receiverOn(restartingStore().store, { onSuccess, handlerTimeoutMs: 5_000 }).receive(transferSucceeded()),
  );
  const pauses = startedAt.slice(1).map((each, at) => Math.round(each - (startedAt[at] ?? NaN)));
  expect(pauses).toEqual([20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
});

test('a handler that runs again has what is left of its time', async () => {
  const signals: AbortSignal[] = [];
  const receiver = receiverOn(restartingStore().store, {
    onSuccess(_callback: TransferCallback, { signal }: HandlerContext<Tx>) {
      signals.push(signal);
      if (signals.length > 1) return never();
      return new Promise((_resolve, reject) => setTimeout(reject, 2_000, conflict));
    },
    handlerTimeoutMs: 3_000,
  });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(3_000);
  await new Promise(setImmediate);
  expect(await delivery).toMatchObject({ outcome: 'timed_out' });
  expect([signals.length, signals[1]?.aborted]).toEqual([2, true]);
});

test('a handler that meets a conflict after its time does not run again, and its claim is released', async () => {
  const outcomes: string[] = [];
  const release = vi.fn(() => Promise.resolve());
  const restart = vi.fn(() => Promise.resolve(true));
  const work = later();
  const onSuccess = vi.fn(() => work.promise);
  const onOutcome = ({ outcome }: { outcome: string }): number => outcomes.push(outcome);
  const { store } = restartingStore({ release, restart });
  const delivery = receiverOn(store, { onSuccess, onOutcome, handlerTimeoutMs: 1_000 }).receive(transferSucceeded());
  await finish(delivery);
  work.reject(conflict);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(outcomes).toEqual(['timed_out', 'handler_failed']);
  expect([onSuccess, restart, release].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 1]);
});

test('a handler that is to run again does not when the receiver closes meanwhile', async () => {
  const release = vi.fn(() => Promise.resolve());
  const onSuccess = vi.fn().mockRejectedValue(conflict);
  const receiver = receiverOn(restartingStore({ release, restart: () => begun.promise }).store, { onSuccess });
  const begun = later<boolean>();
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(10);
  const closed = receiver.close({ timeoutMs: 100 });
  await vi.advanceTimersByTimeAsync(200);
  begun.resolve(true);
  expect(await finish(delivery)).toMatchObject({ outcome: 'handler_failed' });
  await finish(closed);
  expect([onSuccess.mock.calls.length, release.mock.calls.length]).toEqual([1, 1]);
});

test('a handler that runs again after its success met a conflict is told when it loses its lease', async () => {
  const settle = vi.fn<Claim['settle']>().mockRejectedValue(conflict);
  const renew = (): Promise<boolean> => Promise.resolve(false);
  const signals: AbortSignal[] = [];
  const receiver = receiverOn(restartingStore({ settle, renew }).store, {
    onSuccess(_callback: TransferCallback, { signal }: HandlerContext<Tx>) {
      signals.push(signal);
      return signals.length > 1 ? new Promise((resolve) => setTimeout(resolve, 10_000)) : undefined;
    },
  });
  expect(await finish(receiver.receive(transferSucceeded()))).toMatchObject({ outcome: 'store_unavailable' });
  expect([signals.length, signals[1]?.reason]).toMatchObject([2, { code: 'LEASE_LOST' }]);
});
