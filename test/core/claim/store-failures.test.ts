import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferService } from 'transfer-callbacks/client';
import { recordingLogger } from '../../support/helpers/logger.js';
import { fakeClock, later, never, receiverOf, slowStore, storeWith } from '../support.js';
import { containing } from '../../support/helpers/containing.js';

beforeEach(fakeClock);

test('a claim without a reply is given up 50 ms after storeTimeoutMs, and released if it is granted later', async () => {
  const arrival = later();
  const records = memoryStore();
  const callback = transferSucceeded();
  const delivery = receiverOf({ store: slowStore(() => arrival.promise, records) }).receive(callback);
  await vi.advanceTimersByTimeAsync(2_050);
  expect(await delivery).toMatchObject({
    outcome: 'store_unavailable',
    error: { code: 'STORE_TIMEOUT', message: containing('The store did not reply within 2000 ms.') },
    durationMs: 2_050,
  });
  arrival.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(await receiverOf({ store: records }).receive(callback)).toMatchObject({ outcome: 'processed' });
});

test('a claim of a store that queues may take the time of the queue as well', async () => {
  const receive = async (inFlightWaitMs: number, replyMs: number): Promise<unknown> => {
    const slow = slowStore(() => new Promise((resolve) => setTimeout(resolve, replyMs)));
    const store = { ...slow, transactional: true };
    const delivery = receiverOf({ store, inFlightWaitMs }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(replyMs + 100);
    return delivery;
  };
  expect(await receive(0, 3_999)).toMatchObject({ outcome: 'processed' });
  expect(await receive(5_000, 6_999)).toMatchObject({ outcome: 'processed' });
  expect(await receive(5_000, 7_051)).toMatchObject({
    outcome: 'store_unavailable',
    error: { code: 'STORE_TIMEOUT', message: containing('The store did not reply within 7000 ms.') },
  });
});

test('a recording without a reply is given up after storeTimeoutMs, which is logged', async () => {
  const receiver = receiverOf({ store: storeWith({ granted: () => ({ settle: never }) }) });
  const delivery = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(2_050);
  expect(await delivery).toMatchObject({ outcome: 'processed', error: { code: 'STORE_TIMEOUT' }, durationMs: 2_050 });
});

// eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- JavaScript may.
const rejectWithUndefined = (): Promise<never> => Promise.reject(undefined);
const noReason = { message: '`undefined` was thrown in place of an error.' };

test('a success that a store rejects with undefined counts as not recorded', async () => {
  const logger = recordingLogger();
  const told: unknown[] = [];
  const store = storeWith({ granted: () => ({ settle: rejectWithUndefined }) });
  const receiver = receiverOf({ store, logger, onOutcome: (outcome) => told.push(outcome) });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed', error: noReason });
  expect(told).toMatchObject([{ error: noReason }]);
  expect(logger.lines).toMatchObject([
    {
      level: 'error',
      message: 'A callback was handled, but not recorded: do not restart this process before the store is back.',
      details: { err: noReason },
    },
  ]);
  const closed = receiver.close({ timeoutMs: 0 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await closed).toMatchObject({ unfinished: 1 });
});

test('a store, a verifier, a schema or a handler that rejects with undefined fails with an error', async () => {
  const store = { claim: rejectWithUndefined };
  const schema = z.unknown().transform((): never => {
    // eslint-disable-next-line @typescript-eslint/only-throw-error -- JavaScript may.
    throw undefined;
  }) as never;
  const callback = transferSucceeded();
  const outcomes = [
    await receiverOf({ store }).receive(callback),
    await receiverOf({
      store: storeWith({ transactional: true, granted: () => ({ settle: rejectWithUndefined }) }),
    }).receive(callback),
    await receiverOf().receive(callback, { verify: rejectWithUndefined }),
    await receiverOf({ service: transferService({ payload: schema }) }).receive(callback),
    await receiverOf({ onSuccess: rejectWithUndefined }).receive(callback),
    await receiverOf({ confirm: rejectWithUndefined }).receive(callback),
  ];
  expect(outcomes.map(({ outcome }) => outcome)).toEqual([
    ...['store_unavailable', 'store_unavailable', 'unauthorized', 'invalid', 'handler_failed', 'unconfirmed'],
  ]);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ error: noReason });
  expect(await receiverOf({ store }).check()).toMatchObject({ ok: false, error: noReason });
});

test('a late reply that the callback is handled releases nothing', async () => {
  const response = later<Awaited<ReturnType<CallbackStore['claim']>>>();
  const delivery = receiverOf({ store: { claim: () => response.promise } }).receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(2_050);
  expect(await delivery).toMatchObject({ outcome: 'store_unavailable' });
  response.resolve({ state: 'handled', fingerprint: '' });
  await vi.advanceTimersByTimeAsync(0);
});

test('a release that fails changes neither the outcome of the handler nor its error', async () => {
  const error = new Error('the cause');
  const logger = recordingLogger();
  const receiver = receiverOf({
    store: storeWith({ granted: () => ({ release: () => Promise.reject(new Error('release failed')) }) }),
    logger,
    onSuccess: () => Promise.reject(error),
  });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'handler_failed', error });
  expect(logger.lines).toMatchObject([
    {
      message: 'A claim could not be released; it is free within 15000 ms.',
      details: { id: callback.data.id, err: { message: 'release failed' } },
    },
    { message: 'The handler of a callback failed.' },
  ]);
});

test('a success that cannot be recorded is acknowledged, held, and recorded in the background', async () => {
  const down = new Error('down');
  let failures = 3;
  const logger = recordingLogger();
  const onSuccess = vi.fn();
  const store = storeWith({
    granted: (claim) => ({ settle: () => (failures-- > 0 ? Promise.reject(down) : claim.settle()) }),
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
      message: 'A handled callback was recorded on retry.',
      details: { id: callback.data.id },
    },
  ]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(vi.getTimerCount()).toBe(0);
});

test('recording is given up when the record would have expired', async () => {
  const settle = vi.fn(() => Promise.reject(new Error('down')));
  const store = storeWith({ granted: () => ({ settle }) });
  const receiver = receiverOf({ store, retentionMs: 90_001 });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
  await vi.advanceTimersByTimeAsync(100_000);
  expect(vi.getTimerCount()).toBe(0);
  expect(settle.mock.calls.length).toBeGreaterThan(15);
});

test('a transaction that cannot commit is a failure, and the callback is free for the next delivery', async () => {
  const error = new Error('could not serialize');
  const settle = vi.fn().mockRejectedValueOnce(error);
  const store = storeWith({
    transactional: true,
    granted: (claim) => ({ settle: () => (settle() as Promise<never> | undefined) ?? claim.settle() }),
  });
  const receiver = receiverOf({ store });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'store_unavailable', error });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
});

test('a success after the lease was lost is recorded and reported as overlapped', async () => {
  const logger = recordingLogger();
  const receiver = receiverOf({
    store: storeWith({ granted: () => ({ settle: () => Promise.resolve({ overlapped: true }) }) }),
    logger,
  });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed', overlapped: true });
  expect(logger.lines).toMatchObject([{ level: 'error', message: containing('handled twice') }]);
});
