import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import {
  memoryStore,
  RetryLater,
  transferCallbackReceiver,
  transferCallbackSchema,
  type CallbackStore,
  type HandlerContext,
  type TransferCallback,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { UnreadableCallback } from '../../src/core/callback.js';
import { fakeClock, later, never, receiverOf, recorder, storeWith } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
});

describe('a delivery', () => {
  test('runs the handler of its event with the callback and its context', async () => {
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
      timestamp: success.data.timestamp,
      source: 'queue',
      durationMs: 0,
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
        },
      ],
    ]);
  });

  test('is a duplicate after a success, and does not run the handler again', async () => {
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
  ])('is a conflict when its id was settled with another %s', async (name, contradict) => {
    const onSuccess = vi.fn();
    const onFailed = vi.fn();
    const logger = recorder();
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

  test('is a conflict although the store holds a text that this version does not write', async () => {
    const store: CallbackStore = { claim: () => Promise.resolve({ state: 'settled', fingerprint: 'SUCCESS 15000' }) };
    const outcome = await receiverOf({ store }).receive(transferSucceeded());
    expect(outcome).toMatchObject({ outcome: 'conflict', settled: undefined, received: { amount: 15_000 } });
  });

  test.each([
    ['an error', new Error('database down')],
    ['undefined', undefined],
    ['null', null],
    ['a string', 'no'],
    ['an error that claims to be a 200', Object.assign(new Error('fine'), { status: 200, outcome: 'processed' })],
  ])('fails when the handler throws %s, and the next one runs the handler again', async (_name, thrown) => {
    const onSuccess = vi.fn().mockRejectedValueOnce(thrown);
    const receiver = receiverOf({ onSuccess });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'handler_failed', error: thrown });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(2);
  });

  test('fails when the handler throws before it returns a promise', async () => {
    const error = new Error('at once');
    const receiver = receiverOf({
      onSuccess: () => {
        throw error;
      },
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed', error });
  });

  test('is to be retried later when the handler says so, whichever copy of the class it has', async () => {
    const foreign = Object.assign(new Error('later'), { code: 'RETRY_LATER', retryAfterMs: 90_000 });
    const receiver = receiverOf({
      onSuccess: vi.fn().mockRejectedValueOnce(new RetryLater()).mockRejectedValue(foreign),
    });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 30_000 });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 90_000 });
  });

  test('says what is invalid and where, and never a value', async () => {
    const receiver = receiverOf();
    const callback = transferSucceeded();
    const outcome = await receiver.receive({ ...callback, data: { ...callback.data, walletNumber: 237670000000 } });
    expect(outcome).toEqual({
      outcome: 'invalid',
      issues: [{ path: ['data', 'walletNumber'], message: 'Invalid input: expected string, received number' }],
      id: callback.data.id,
      externalId: callback.data.externalId,
      verified: false,
      source: 'direct',
      durationMs: 0,
      delivery: expect.any(String) as string,
    });
  });

  test('a callback that could not be read is invalid, and says why', async () => {
    expect(await receiverOf().receive(new UnreadableCallback('The body is not JSON.'))).toMatchObject({
      outcome: 'invalid',
      issues: [{ path: [], message: 'The body is not JSON.' }],
    });
  });

  test('is judged by a schema of the user, whose result the handler sees', async () => {
    const onSuccess = vi.fn();
    const renamed = z.object({ type: z.literal('paid'), transfer: z.string() }).transform(({ transfer }) => ({
      event: 'transfer.success' as const,
      data: { id: transfer, externalId: transfer, status: 'SUCCESS' as const, amount: '5', currency: 'XAF' },
    }));
    const receiver = transferCallbackReceiver({
      store: memoryStore(),
      schema: renamed,
      onSuccess,
      onFailed: () => undefined,
    });
    expect(await receiver.receive({ type: 'paid', transfer: 't1' })).toMatchObject({ outcome: 'processed', id: 't1' });
    expect(onSuccess.mock.calls[0]).toMatchObject([{ data: { id: 't1', amount: '5' } }, {}]);
  });

  const event = 'transfer.success';
  test.each<[string, (data: object) => unknown]>([
    ['nothing', () => undefined],
    ['no data', () => ({ event })],
    ['null for data', () => ({ event, data: null })],
    ['another event', (data) => ({ event: 'payout.success', data })],
    ['no id', (data) => ({ event, data: { ...data, id: undefined } })],
    ['a number for an id', (data) => ({ event, data: { ...data, id: 5 } })],
    ['another status', (data) => ({ event, data: { ...data, status: 'OK' } })],
    ['no externalId', (data) => ({ event, data: { ...data, externalId: null } })],
    ['no amount', (data) => ({ event, data: { ...data, amount: undefined } })],
    ['no currency', (data) => ({ event, data: { ...data, currency: undefined } })],
  ])('is invalid when the schema gives %s, and the log says whose fault that is', async (_title, give) => {
    const callback = transferSucceeded();
    const onSuccess = vi.fn();
    const receiver = receiverOf({ schema: z.any().transform(() => give(callback.data)) as never, onSuccess });
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'invalid',
      error: expect.objectContaining({ code: 'INVALID_ARGUMENT' }) as unknown,
    });
    expect(onSuccess).not.toHaveBeenCalled();
  });

  test('is invalid when the schema throws', async () => {
    const error = new Error('broken schema');
    const schema = transferCallbackSchema.refine(() => {
      throw error;
    });
    expect(await receiverOf({ schema }).receive(transferSucceeded())).toMatchObject({ outcome: 'invalid', error });
  });

  test.each([
    ['says no', () => false],
    ['says no in time', () => Promise.resolve(false)],
  ])('is unauthorized when admission %s, and never reaches the store', async (_name, verify) => {
    const claim = vi.fn();
    const receiver = receiverOf({ store: { claim } });
    expect(await receiver.receive(transferSucceeded(), { verify })).toEqual({
      outcome: 'unauthorized',
      source: 'direct',
      durationMs: 0,
      delivery: expect.any(String) as string,
    });
    expect(await receiver.receive('nonsense', { verify })).toEqual({
      outcome: 'unauthorized',
      issues: [{ path: [], message: 'Invalid input: expected object, received string' }],
      source: 'direct',
      durationMs: 0,
      delivery: expect.any(String) as string,
    });
    expect(claim).not.toHaveBeenCalled();
  });

  test('is unauthorized when admission throws', async () => {
    const error = new Error('no key server');
    const verify = (): never => {
      throw error;
    };
    expect(await receiverOf().receive(transferSucceeded(), { verify })).toMatchObject({
      outcome: 'unauthorized',
      error,
    });
  });

  test('shows admission the callback where it is valid, and nothing where it is not', async () => {
    const verify = vi.fn(() => true);
    const receiver = receiverOf();
    const callback = transferFailed();
    expect(await receiver.receive(callback, { verify })).toMatchObject({ outcome: 'processed' });
    expect(await receiver.receive({ event: 'x' }, { verify })).toMatchObject({ outcome: 'invalid' });
    expect(verify.mock.calls).toEqual([[callback], [undefined]]);
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

  test.each([0, 700, 10_000])('is given up as in progress after inFlightWaitMs of %i', async (inFlightWaitMs) => {
    const receiver = receiverOf({ onSuccess: never, inFlightWaitMs });
    const callback = transferSucceeded();
    void receiver.receive(callback);
    const second = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(inFlightWaitMs);
    expect(await second).toMatchObject({ outcome: 'in_progress', durationMs: inFlightWaitMs });
  });

  test('asks the store ever less often, and at the end once more', async () => {
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

describe('deadlines', () => {
  test('a late handler is told by its signal, keeps its lease, and its success counts', async () => {
    const work = later();
    let context: HandlerContext | undefined;
    const logger = recorder();
    const receiver = receiverOf({
      logger,
      onSuccess: (_callback, given) => {
        context = given;
        return work.promise;
      },
    });
    const callback = transferSucceeded();
    const delivery = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(19_999);
    expect(context?.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await delivery).toMatchObject({
      outcome: 'timed_out',
      error: { code: 'HANDLER_TIMEOUT' },
      durationMs: 20_000,
    });
    expect(context?.signal.reason).toMatchObject({ code: 'HANDLER_TIMEOUT' });

    const meanwhile = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(40_000);
    expect(await meanwhile).toMatchObject({ outcome: 'in_progress' });

    work.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    expect(logger.lines.at(-1)).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('handled late') as string,
    });
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
    const logger = recorder();
    const outcomes: TransferCallbackOutcome[] = [];
    const onSuccess = vi.fn().mockReturnValueOnce(work.promise);
    const settle = vi.fn();
    const store = storeWith({
      lease: (lease) => ({
        settle: async () => {
          const settled = await lease.settle();
          settle(settled);
          return settled;
        },
      }),
    });
    const receiver = receiverOf({ store, logger, onSuccess, onOutcome: (outcome) => outcomes.push(outcome) });
    const callback = transferSucceeded();
    void receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(120_000);
    const during = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(await during).toMatchObject({ outcome: 'in_progress' });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
    expect(logger.lines.map(({ message }) => message)).toContainEqual(expect.stringContaining('sixfold'));
    work.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(settle.mock.calls).toEqual([[{ overlapped: false }], [{ overlapped: true }]]);
    expect(onSuccess).toHaveBeenCalledTimes(2);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['timed_out', 'in_progress', 'processed', 'processed']);
    expect(outcomes.at(-1)).toMatchObject({ late: true, overlapped: true, id: callback.data.id });
    expect(logger.lines.at(-1)).toMatchObject({ level: 'error', details: { late: true, overlapped: true } });
  });

  test('a handler whose lease was lost is told by its signal', async () => {
    let context: HandlerContext | undefined;
    const logger = recorder();
    const renew = vi.fn().mockResolvedValueOnce(true).mockResolvedValue(false);
    const receiver = receiverOf({
      store: storeWith({ lease: () => ({ renew }) }),
      logger,
      onSuccess: (_callback, given) => {
        context = given;
        return never();
      },
    });
    void receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(9_999);
    expect(context?.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(context?.signal.reason).toMatchObject({ code: 'LEASE_LOST' });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(renew).toHaveBeenCalledTimes(2);
    expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('was lost') as string }]);
  });

  test('one renewal that fails or hangs does not end the lease', async () => {
    const renewals = vi.fn().mockRejectedValueOnce(new Error('down')).mockImplementationOnce(never);
    const work = later();
    const store = storeWith({
      lease: (lease) => ({ renew: () => (renewals() as Promise<boolean> | undefined) ?? lease.renew() }),
    });
    const receiver = receiverOf({ store, onSuccess: () => work.promise });
    const delivery = receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(14_999);
    work.resolve();
    expect(await delivery).toMatchObject({ outcome: 'processed', overlapped: false });
  });

  test('nothing is renewed any more after a success or a failure', async () => {
    const renew = vi.fn();
    const onSuccess = vi.fn().mockRejectedValueOnce(new Error('first'));
    const receiver = receiverOf({ store: storeWith({ lease: () => ({ renew }) }), onSuccess });
    const callback = transferSucceeded();
    await receiver.receive(callback);
    await receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(renew).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a renewal that says no after the end of the hold is nobody’s loss', async () => {
    const work = later();
    const answer = later<boolean>();
    const logger = recorder();
    const store = storeWith({ lease: () => ({ renew: () => answer.promise }) });
    const receiver = receiverOf({ store, logger, onSuccess: () => work.promise });
    const delivery = receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(5_000);
    work.resolve();
    await delivery;
    answer.resolve(false);
    await vi.advanceTimersByTimeAsync(0);
    expect(logger.lines).toEqual([]);
  });
});

describe('a store that fails', () => {
  test('before the claim: the handler is not run', async () => {
    const error = new Error('connection refused');
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: { claim: () => Promise.reject(error) }, onSuccess });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'store_unavailable', error });
    expect(onSuccess).not.toHaveBeenCalled();
  });

  test('by throwing where it should reject: likewise', async () => {
    const error = new Error('at once');
    const store: CallbackStore = {
      claim: () => {
        throw error;
      },
    };
    expect(await receiverOf({ store }).receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error,
    });
  });

  test('by never answering: within storeTimeoutMs, and a claim that comes late is released', async () => {
    const arrival = later();
    const records = memoryStore();
    const slow: CallbackStore['claim'] = async (key, request) => {
      await arrival.promise;
      return records.claim(key, request);
    };
    const callback = transferSucceeded();
    const delivery = receiverOf({ store: { claim: slow } }).receive(callback);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await delivery).toMatchObject({
      outcome: 'store_unavailable',
      error: { code: 'STORE_TIMEOUT', message: 'The store did not reply within 2000 ms.' },
      durationMs: 2_000,
    });
    arrival.resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(await receiverOf({ store: records }).receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('by answering late that the callback is settled: nothing is released', async () => {
    const answer = later<Awaited<ReturnType<CallbackStore['claim']>>>();
    const delivery = receiverOf({ store: { claim: () => answer.promise } }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await delivery).toMatchObject({ outcome: 'store_unavailable' });
    answer.resolve({ state: 'settled', fingerprint: '' });
    await vi.advanceTimersByTimeAsync(0);
  });

  test('to release: the outcome is still the handler’s, and its error too', async () => {
    const error = new Error('the cause');
    const logger = recorder();
    const receiver = receiverOf({
      store: storeWith({ lease: () => ({ release: () => Promise.reject(new Error('release failed')) }) }),
      logger,
      onSuccess: () => Promise.reject(error),
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed', error });
    expect(logger.lines.map(({ message }) => message)).toEqual([
      'A claim could not be released; it is free within 15000 ms.',
      'The handler of a transfer callback failed.',
    ]);
  });

  test('to settle: acknowledged all the same, held, and recorded in the background', async () => {
    const down = new Error('down');
    let failures = 3;
    const logger = recorder();
    const onSuccess = vi.fn();
    const store = storeWith({
      lease: (lease) => ({ settle: () => (failures-- > 0 ? Promise.reject(down) : lease.settle()) }),
    });
    const receiver = receiverOf({ store, logger, onSuccess, inFlightWaitMs: 0 });
    const elsewhere = receiverOf({ store, onSuccess, inFlightWaitMs: 0 });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false, error: down });
    expect(await elsewhere.receive(callback)).toMatchObject({ outcome: 'in_progress' });
    await vi.advanceTimersByTimeAsync(699);
    expect(await elsewhere.receive(callback)).toMatchObject({ outcome: 'in_progress' });
    await vi.advanceTimersByTimeAsync(1);
    expect(await elsewhere.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    expect(onSuccess).toHaveBeenCalledTimes(1);
    expect(logger.lines.filter(({ message }) => message.includes('record'))).toMatchObject([
      { level: 'error', details: { err: { message: 'down' }, id: callback.data.id } },
      {
        level: 'warn',
        message: 'A handled transfer callback was recorded on retry.',
        details: { id: callback.data.id },
      },
    ]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('to settle for ever: given up when the record would have expired anyway', async () => {
    const settle = vi.fn(() => Promise.reject(new Error('down')));
    const store = storeWith({ lease: () => ({ settle }) });
    const receiver = receiverOf({ store, retentionMs: 90_001 });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    await vi.advanceTimersByTimeAsync(100_000);
    expect(vi.getTimerCount()).toBe(0);
    expect(settle.mock.calls.length).toBeGreaterThan(15);
  });

  test('to commit a transaction: a failure, rolled back, and free for the next delivery', async () => {
    const error = new Error('could not serialize');
    const settle = vi.fn().mockRejectedValueOnce(error);
    const store = storeWith({
      transactional: true,
      lease: (lease) => ({ settle: () => (settle() as Promise<never> | undefined) ?? lease.settle() }),
    });
    const receiver = receiverOf({ store });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'store_unavailable', error });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('to keep the lease: the success is recorded and reported as overlapped', async () => {
    const logger = recorder();
    const receiver = receiverOf({
      store: storeWith({ lease: () => ({ settle: () => Promise.resolve({ overlapped: true }) }) }),
      logger,
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed', overlapped: true });
    expect(logger.lines).toMatchObject([
      { level: 'error', message: expect.stringContaining('handled twice') as string },
    ]);
  });
});

describe('confirm', () => {
  test('hands the handler what was read', async () => {
    const onSuccess = vi.fn();
    const read = (callback: TransferCallback): TransferCallback =>
      ({ ...callback, data: { ...callback.data, provider: 'as read' } }) as TransferCallback;
    const receiver = receiverOf({ confirm: (callback) => Promise.resolve(read(callback)), onSuccess });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    expect(onSuccess.mock.calls[0]).toMatchObject([{ data: { provider: 'as read' } }, {}]);
  });

  test.each<[string, (callback: TransferCallback) => unknown]>([
    ['nothing', () => undefined],
    ['true', () => true],
    ['another transfer', (callback) => transferSucceeded({ ...callback.data, id: 'other' } as object)],
    ['another amount', (callback) => transferSucceeded({ ...callback.data, amount: 1 } as object)],
    ['another event', (callback) => ({ ...callback, event: 'transfer.failed' })],
    ['a throw', () => { throw new Error('service down'); }], // prettier-ignore
    ['a rejection', () => Promise.reject(new Error('service down'))],
  ])('that answers with %s leaves the callback unconfirmed, unhandled and free', async (_name, answer) => {
    const onSuccess = vi.fn();
    const confirm = vi.fn((callback: TransferCallback) => callback as unknown);
    confirm.mockImplementationOnce(answer);
    const receiver = receiverOf({ confirm: confirm as (callback: TransferCallback) => TransferCallback, onSuccess });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'unconfirmed',
      error: expect.any(Error) as Error,
    });
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('that outlasts the deadline ends the delivery, and the handler is not run after it', async () => {
    const onSuccess = vi.fn();
    const answer = later<TransferCallback>();
    const confirm = vi
      .fn((callback: TransferCallback) => Promise.resolve(callback))
      .mockReturnValueOnce(answer.promise);
    const receiver = receiverOf({ confirm, onSuccess });
    const callback = transferSucceeded();
    const delivery = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await delivery).toMatchObject({ outcome: 'unconfirmed', error: { code: 'CONFIRM_TIMEOUT' } });
    answer.resolve(callback);
    await vi.advanceTimersByTimeAsync(0);
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  });
});

describe('close', () => {
  test('lets running handlers finish and turns new deliveries away', async () => {
    const work = later();
    const receiver = receiverOf({ onSuccess: () => work.promise });
    const running = receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(0);
    expect(receiver.closing).toBe(false);
    const closed = receiver.close();
    expect(receiver.closing).toBe(true);
    expect(await receiver.receive(transferFailed())).toMatchObject({ outcome: 'closing' });
    await vi.advanceTimersByTimeAsync(9_000);
    work.resolve();
    expect(await running).toMatchObject({ outcome: 'processed' });
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(vi.getTimerCount(), 'a timer that goes on').toBe(0);
  });

  test('is done at once when nothing runs, and a second call joins the first', async () => {
    const receiver = receiverOf();
    expect(await Promise.all([receiver.close(), receiver.close()])).toEqual([
      { unfinished: 0, ids: [] },
      { unfinished: 0, ids: [] },
    ]);
  });

  test('aborts the signals after its timeout, and settles handlers that heed them', async () => {
    const onSuccess = vi.fn(
      (_callback: unknown, { signal }: HandlerContext) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        }),
    );
    const records = memoryStore();
    const receiver = receiverOf({ store: records, onSuccess });
    const callback = transferSucceeded();
    const running = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(0);
    const closed = receiver.close({ timeoutMs: 500 });
    await vi.advanceTimersByTimeAsync(500);
    expect(await running).toMatchObject({ outcome: 'handler_failed', error: { code: 'CLOSING' } });
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
    expect(await receiverOf({ store: records }).receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('leaves a handler that does not heed its signal to its lease', async () => {
    const records = memoryStore();
    const receiver = receiverOf({ store: records, onSuccess: never });
    const callback = transferSucceeded();
    void receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(0);
    const closed = receiver.close({ timeoutMs: 500 });
    await vi.advanceTimersByTimeAsync(2_500);
    expect(await closed).toMatchObject({ unfinished: 1 });
    const next = receiverOf({ store: records, inFlightWaitMs: 20_000 }).receive(callback);
    await vi.advanceTimersByTimeAsync(15_000);
    expect(await next).toMatchObject({ outcome: 'processed' });
  });

  test('waits for a success that is still being recorded, and gives up on it with the rest', async () => {
    let down = true;
    const store = storeWith({
      lease: (lease) => ({ settle: () => (down ? Promise.reject(new Error('down')) : lease.settle()) }),
    });
    const receiver = receiverOf({ store });
    await receiver.receive(transferSucceeded());
    const closed = receiver.close();
    await vi.advanceTimersByTimeAsync(5_000);
    down = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await closed).toEqual({ unfinished: 0, ids: [] });

    down = true;
    const other = receiverOf({ store });
    await other.receive(transferSucceeded());
    const gaveUp = other.close({ timeoutMs: 0 });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await gaveUp).toMatchObject({ unfinished: 1 });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('turns away deliveries that wait, and those whose claim comes while it closes', async () => {
    const records = memoryStore();
    const arrival = later();
    const onSuccess = vi.fn();
    const callback = transferSucceeded();
    void receiverOf({ store: records, onSuccess: never }).receive(callback);
    const receiver = receiverOf({
      store: {
        claim: async (key, request) => {
          if (key !== callback.data.id) await arrival.promise;
          return records.claim(key, request);
        },
      },
      onSuccess,
    });
    const waiting = receiver.receive(callback);
    const other = transferSucceeded();
    const claiming = receiver.receive(other);
    await vi.advanceTimersByTimeAsync(10);
    const closed = receiver.close();
    arrival.resolve();
    await vi.advanceTimersByTimeAsync(1_000);
    expect([(await waiting).outcome, (await claiming).outcome]).toEqual(['closing', 'closing']);
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiverOf({ store: records }).receive(other)).toMatchObject({ outcome: 'processed' });
  });

  test('refuses a bad timeout', async () => {
    await expect(receiverOf().close({ timeoutMs: -1 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'Expected `timeoutMs` to be a whole number from 0 to 2147483647, got -1.',
    });
  });
});

describe('seeing', () => {
  test('every delivery is told once, to onOutcome and to the diagnostics channel', async () => {
    const told: TransferCallbackOutcome[] = [];
    const published: unknown[] = [];
    const listen = (message: unknown): void => void published.push(message);
    subscribe('transfer-callbacks:outcome', listen);
    const receiver = receiverOf({ onOutcome: (outcome) => told.push(outcome) });
    const callback = transferSucceeded();
    const answers = [
      await receiver.receive(callback),
      await receiver.receive(callback),
      await receiver.receive({}),
      await receiver.receive(callback, { verify: () => false }),
    ];
    unsubscribe('transfer-callbacks:outcome', listen);
    expect(answers.map(({ outcome }) => outcome)).toEqual(['processed', 'duplicate', 'invalid', 'unauthorized']);
    expect(told).toEqual(answers);
    expect(published).toEqual(answers);
  });

  test.each<[string, () => unknown]>([
    ['throws', () => { throw new Error('metrics down'); }], // prettier-ignore
    ['rejects', () => Promise.reject(new Error('metrics down'))],
  ])('an onOutcome that %s is logged and changes nothing', async (_name, onOutcome) => {
    const logger = recorder();
    const receiver = receiverOf({ onOutcome, logger });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    await vi.advanceTimersByTimeAsync(0);
    expect(logger.lines).toMatchObject([
      { level: 'error', message: '`onOutcome` threw.', details: { err: { message: 'metrics down' } } },
    ]);
  });

  test('a logger that throws changes nothing', async () => {
    const fail = (): never => {
      throw new Error('disk full');
    };
    const receiver = receiverOf({
      logger: { warn: fail, error: fail },
      onSuccess: () => Promise.reject(new Error('no')),
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed' });
  });

  test('the console is told of warnings and errors, unless the logger is false', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    const error = vi.spyOn(console, 'error').mockReturnValue();
    const failure = new Error('no');
    for (const logger of [undefined, false] as const) {
      const receiver = receiverOf({ logger, onSuccess: () => Promise.reject(failure) });
      await receiver.receive(transferSucceeded());
      await receiver.receive({});
    }
    expect(error.mock.calls).toEqual([
      [
        'The handler of a transfer callback failed.',
        expect.objectContaining({
          outcome: 'handler_failed',
          err: expect.objectContaining({ message: 'no' }) as object,
        }),
      ],
    ]);
    expect(warn.mock.calls).toEqual([
      [
        'A transfer callback is not as documented.',
        expect.objectContaining({ outcome: 'invalid', issues: [expect.stringMatching(/^event: /)] }),
      ],
    ]);
    vi.restoreAllMocks();
  });

  test('no phone number and no bank account is ever logged or told', async () => {
    const logger = recorder();
    const told: unknown[] = [];
    const receiver = receiverOf({
      logger,
      onOutcome: (outcome) => told.push(outcome),
      onSuccess: () => Promise.reject(new Error('no')),
    });
    const [mobile, bank] = [transferSucceeded(), transferSucceeded({ paymentMethod: 'bank' })];
    for (const callback of [mobile, bank]) {
      await receiver.receive(callback);
      await receiver.receive({ ...callback, data: { ...callback.data, bankAccount: 'IBAN', walletNumber: [1] } });
      await receiver.receive(callback, { verify: () => false });
    }
    const text = inspect([logger.lines, told], { depth: 9 });
    expect(text).toContain(mobile.data.id);
    expect(text).not.toMatch(/237670000000|10005000010123456789|IBAN/);
  });

  test('a store of this process alone is warned of in production, once', () => {
    const logger = recorder();
    receiverOf({ logger });
    vi.stubEnv('NODE_ENV', 'production');
    receiverOf({ logger, store: storeWith({}) });
    expect(logger.lines).toEqual([]);
    receiverOf({ logger });
    expect(logger.lines).toMatchObject([
      { level: 'warn', message: expect.stringContaining('this process only') as string },
    ]);
  });
});
