import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, transferCallbackReceiver, type CallbackStore, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, later, never, receiverOf } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('a delivery', () => {
  test('a delivery runs the handler of its event with the callback and its context', async () => {
    const onSuccess = vi.fn();
    const onFailed = vi.fn();
    const receiver = receiverOf({ onSuccess, onFailed });
    const [success, failure] = [transferSucceeded({ paymentMethod: 'bank' }), transferFailed()];

    expect(await receiver.receive(success, { source: 'queue' })).toEqual({
      outcome: 'processed',
      overlapped: false,
      id: success.data.id,
      externalId: success.data.externalId,
      event: 'transfer.success',
      status: 'SUCCESS',
      source: 'queue',
      durationMs: 0,
      timestamp: success.data.timestamp,
      waitedMs: 0,
      delivery: expect.any(String) as string,
    });
    expect(await receiver.receive(failure)).toMatchObject({ outcome: 'processed', status: 'FAILED', source: 'direct' });

    expect(onSuccess.mock.calls).toEqual([
      [
        success,
        {
          delivery: expect.any(String) as string,
          source: 'queue',
          tx: undefined,
          signal: expect.any(AbortSignal) as AbortSignal,
          afterCommit: expect.any(Function) as () => void,
        },
      ],
    ]);
    expect(onFailed.mock.calls).toEqual([
      [
        failure,
        {
          delivery: expect.any(String) as string,
          source: 'direct',
          tx: undefined,
          signal: expect.any(AbortSignal) as AbortSignal,
          afterCommit: expect.any(Function) as () => void,
        },
      ],
    ]);
  });

  test('the handler gets the transaction of its lease', async () => {
    const tx = { query: () => undefined };
    const memory = memoryStore();
    const store: CallbackStore<typeof tx> = {
      async claim(key, request) {
        const reply = await memory.claim(key, request);
        return reply.state === 'claimed' ? { ...reply, claim: { ...reply.claim, tx } } : reply;
      },
    };
    const onSuccess = vi.fn();
    const receiver = transferCallbackReceiver({ store, onSuccess, onFailed: () => undefined, logger: false });
    await receiver.receive(transferSucceeded());
    expect(onSuccess).toHaveBeenCalledWith(expect.anything(), expect.objectContaining({ tx }));
  });

  test('a delivery after a success is a duplicate and does not run the handler again', async () => {
    const onSuccess = vi.fn();
    const receiver = receiverOf({ onSuccess });
    const callback = transferSucceeded();
    await receiver.receive(callback);
    expect(await receiver.receive(structuredClone(callback))).toMatchObject({
      outcome: 'duplicate',
      id: callback.data.id,
    });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test.each<['status' | 'amount' | 'currency' | 'externalId', (data: TransferCallback['data']) => TransferCallback]>([
    ['status', (data: TransferCallback['data']) => transferFailed({ ...data, status: 'FAILED' } as object)],
    ['amount', (data: TransferCallback['data']) => transferSucceeded({ ...data, amount: 15_000.01 } as object)],
    ['currency', (data: TransferCallback['data']) => transferSucceeded({ ...data, currency: 'XOF' } as object)],
    ['externalId', (data: TransferCallback['data']) => transferSucceeded({ ...data, externalId: 'other' } as object)],
  ])('a delivery is a conflict when its id was settled with another %s', async (name, contradict) => {
    const onSuccess = vi.fn();
    const onFailed = vi.fn();
    const logger = recordingLogger();
    const receiver = receiverOf({ onSuccess, onFailed, logger });
    const callback = transferSucceeded();
    await receiver.receive(callback);
    expect(await receiver.receive(contradict(callback.data))).toMatchObject({
      outcome: 'conflict',
      settled: { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: callback.data.externalId },
      received: { [name]: contradict(callback.data).data[name] },
    });
    expect(onSuccess).toHaveBeenCalledTimes(1);
    expect(onFailed).not.toHaveBeenCalled();
    expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('contradicts') as string }]);
  });

  test('a settled record that this version cannot read is a conflict', async () => {
    const store: CallbackStore = { claim: () => Promise.resolve({ state: 'settled', fingerprint: 'SUCCESS 15000' }) };
    const outcome = await receiverOf({ store }).receive(transferSucceeded());
    expect(outcome).toMatchObject({ outcome: 'conflict', settled: undefined, received: { amount: 15_000 } });
  });
});

describe('waiting', () => {
  test('a delivery that meets a running handler is a duplicate once that succeeds', async () => {
    const work = later();
    const onSuccess = vi.fn(() => work.promise);
    const receiver = receiverOf({ onSuccess });
    const callback = transferSucceeded();
    const [first, second] = [receiver.receive(callback), receiver.receive(callback)];
    await vi.advanceTimersByTimeAsync(4_000);
    work.resolve();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([(await first).outcome, (await second).outcome]).toEqual(['processed', 'duplicate']);
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test('a delivery that meets a running handler runs it itself once that fails', async () => {
    const work = later();
    const onSuccess = vi.fn().mockReturnValueOnce(work.promise);
    const receiver = receiverOf({ onSuccess });
    const callback = transferSucceeded();
    const [first, second] = [receiver.receive(callback), receiver.receive(callback)];
    await vi.advanceTimersByTimeAsync(4_000);
    work.reject(new Error('failed after all'));
    await vi.advanceTimersByTimeAsync(1_000);
    expect([(await first).outcome, (await second).outcome]).toEqual(['handler_failed', 'processed']);
    expect(onSuccess).toHaveBeenCalledTimes(2);
  });

  test.each([0, 700, 10_000])(
    'a waiting delivery ends as in progress after inFlightWaitMs of %i',
    async (inFlightWaitMs) => {
      const receiver = receiverOf({ onSuccess: never, inFlightWaitMs });
      const callback = transferSucceeded();
      void receiver.receive(callback);
      const second = receiver.receive(callback);
      await vi.advanceTimersByTimeAsync(inFlightWaitMs);
      expect(await second).toMatchObject({ outcome: 'in_progress', durationMs: inFlightWaitMs });
    },
  );

  test('a waiting delivery asks the store with growing pauses, and once more at the end', async () => {
    const askedAt: number[] = [];
    const startedAt = performance.now();
    const claim: CallbackStore['claim'] = () => {
      askedAt.push(performance.now() - startedAt);
      return Promise.resolve({ state: 'in_progress' });
    };
    const delivery = receiverOf({ store: { claim }, inFlightWaitMs: 3_000 }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(3_000);
    await delivery;
    expect(askedAt).toEqual([0, 50, 150, 350, 750, 1_550, 2_550, 3_000]);
  });

  test('a claim tells the store all times, and what people search for', async () => {
    const claim = vi.fn<CallbackStore['claim']>(() => Promise.resolve({ state: 'in_progress' }));
    const { data, event } = transferSucceeded();
    await receiverOf({ store: { claim }, inFlightWaitMs: 0, handlerTimeoutMs: 7_000 }).receive({ event, data });
    expect(claim.mock.calls[0]).toEqual([
      data.id,
      {
        token: expect.any(String) as string,
        fingerprint: expect.any(String) as string,
        event,
        externalId: data.externalId,
        leaseMs: 15_000,
        retentionMs: 604_800_000,
        timeoutMs: 2_000,
        queueMs: 2_000,
        maxHeldMs: 42_000,
      },
    ]);
  });

  test('every claim of one delivery has the same token, and no two deliveries share one', async () => {
    const tokens: string[] = [];
    const claim: CallbackStore['claim'] = (_key, { token }) => {
      tokens.push(token);
      return Promise.resolve({ state: 'in_progress' });
    };
    const receiver = receiverOf({ store: { claim }, inFlightWaitMs: 100 });
    for (let count = 0; count < 2; count += 1) {
      const delivery = receiver.receive(transferSucceeded());
      await vi.advanceTimersByTimeAsync(100);
      await delivery;
    }
    expect(tokens).toHaveLength(6);
    expect([new Set(tokens.slice(0, 3)).size, new Set(tokens.slice(3)).size, new Set(tokens).size]).toEqual([1, 1, 2]);
  });
});
