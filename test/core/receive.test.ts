import { beforeEach, expect, test, vi } from 'vitest';
import { RetryLater, type CallbackStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, receiverOf, storeWith } from './support.js';

beforeEach(fakeClock);

test('a delivery runs the handler of its event with the callback and its context, once', async () => {
  const tx = { query: () => undefined };
  const onSuccess = vi.fn();
  const onFailed = vi.fn();
  const store = storeWith({ granted: () => ({ tx: tx as never }) });
  const receiver = receiverOf({ store, onSuccess, onFailed });
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
  expect(await receiver.receive(structuredClone(success))).toMatchObject({ outcome: 'duplicate', id: success.data.id });

  const context = {
    delivery: expect.any(String) as string,
    tx,
    signal: expect.any(AbortSignal) as AbortSignal,
    afterCommit: expect.any(Function) as () => void,
  };
  expect(onSuccess.mock.calls).toEqual([[success, { ...context, source: 'queue' }]]);
  expect(onFailed.mock.calls).toEqual([[failure, { ...context, source: 'direct' }]]);
});

const contradiction = 'A callback contradicts the one that was handled under its id.';
const otherTransfer =
  'Another transfer has this id: do two services share this store? Give each a `prefix` or a `table`.';

test.each([
  ['status', { status: 'FAILED' }, contradiction],
  ['amount', { amount: 15_000.01 }, contradiction],
  ['currency', { currency: 'XOF' }, contradiction],
  ['externalId', { externalId: 'other' }, otherTransfer],
  ['status and externalId', { status: 'FAILED', externalId: 'other' }, contradiction],
])('a delivery is a conflict when its id was handled with another %s', async (_name, changed, message) => {
  const onSuccess = vi.fn();
  const onFailed = vi.fn();
  const logger = recordingLogger();
  const receiver = receiverOf({ onSuccess, onFailed, logger });
  const { data } = transferSucceeded();
  await receiver.receive(transferSucceeded(data));
  const make = 'status' in changed ? transferFailed : transferSucceeded;
  expect(await receiver.receive(make({ ...data, ...changed } as object))).toMatchObject({
    outcome: 'conflict',
    recorded: { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: data.externalId },
    received: changed,
  });
  expect(onSuccess).toHaveBeenCalledTimes(1);
  expect(onFailed).not.toHaveBeenCalled();
  expect(logger.lines).toMatchObject([{ level: 'error', message }]);
});

test('a handled record that this version cannot read is a conflict', async () => {
  const store: CallbackStore = { claim: () => Promise.resolve({ state: 'handled', fingerprint: 'SUCCESS 15000' }) };
  const outcome = await receiverOf({ store }).receive(transferSucceeded());
  expect(outcome).toMatchObject({ outcome: 'conflict', recorded: undefined, received: { amount: 15_000 } });
});

const spiky = Object.defineProperty(new Error('spiky'), 'code', {
  get() {
    throw new Error('looked at');
  },
});

test.each([
  ['an error', new Error('database down')],
  ['undefined', undefined],
  ['an error that claims to be a 200', Object.assign(new Error('fine'), { status: 200, outcome: 'processed' })],
  ['an error that throws when it is looked at', spiky],
  ['RetryLater as an object that is no error', { code: 'RETRY_LATER', retryAfterMs: 90_000 }],
  ['RetryLater with another code', Object.assign(new Error('no'), { code: 'LATER', retryAfterMs: 90_000 })],
  ['RetryLater without its time', Object.assign(new Error('no'), { code: 'RETRY_LATER' })],
])('a delivery whose handler throws %s fails, and the next delivery runs the handler again', async (_what, thrown) => {
  const onSuccess = vi.fn().mockThrowOnce(thrown);
  const receiver = receiverOf({ onSuccess });
  const callback = transferSucceeded();
  const error = thrown ?? { message: '`undefined` was thrown in place of an error.' };
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'handler_failed', error });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(onSuccess).toHaveBeenCalledTimes(2);
});

test('a handler asks for a later retry with RetryLater from any copy of the package', async () => {
  const foreign = Object.assign(new Error('later'), { code: 'RETRY_LATER', retryAfterMs: 90_000 });
  const receiver = receiverOf({
    onSuccess: vi.fn().mockRejectedValueOnce(new RetryLater()).mockRejectedValue(foreign),
  });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 30_000 });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 90_000 });
});
