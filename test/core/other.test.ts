import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, transferCallbackReceiver, type TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/containing.js';
import { fakeClock, later, never, receiverOf, storeWith, withPending } from './support.js';

beforeEach(fakeClock);

const pending = { type: 'payout.pending', id: 7, reference: 'payout-1' };

/** Makes a receiver of events without a final status. Its `onSuccess`, `confirm` and store count as a failure. */
function otherReceiver(onOther?: (event: { type: string }, context: { signal: AbortSignal }) => unknown) {
  const unexpected = vi.fn(() => {
    throw new Error('no');
  });
  const ended: TransferCallbackOutcome[] = [];
  const receiver = transferCallbackReceiver({
    store: storeWith({ claim: unexpected }, memoryStore()),
    schema: withPending,
    onSuccess: unexpected,
    onFailed: unexpected,
    confirm: unexpected,
    onOther,
    onOutcome: (outcome) => ended.push(outcome),
    handlerTimeoutMs: 700,
    logger: false,
  });
  return { receiver, unexpected, ended };
}

test('an event without a final status is ignored once onOther has finished, without a claim, a record or confirm', async () => {
  const response = later<undefined>();
  const onOther = vi.fn(() => response.promise);
  const { receiver, unexpected, ended } = otherReceiver(onOther);
  const delivery = receiver.receive(pending, { source: 'queue', verify: (callback) => callback === undefined });
  await vi.advanceTimersByTimeAsync(600);
  expect(ended).toEqual([]);
  response.resolve(undefined);
  const outcome = await delivery;
  expect(outcome).toEqual({
    outcome: 'ignored',
    event: 'other',
    id: '7',
    externalId: 'payout-1',
    delivery: expect.any(String) as string,
    source: 'queue',
    durationMs: 600,
  });
  expect(ended).toEqual([outcome]);
  expect(onOther.mock.calls).toEqual([
    [
      { event: 'other', type: 'payout.pending' },
      { delivery: outcome.delivery, source: 'queue', signal: expect.any(AbortSignal) as AbortSignal },
    ],
  ]);
  expect(unexpected).not.toHaveBeenCalled();
  expect(await receiver.receive(pending)).toMatchObject({ outcome: 'ignored' });
  expect(onOther).toHaveBeenCalledTimes(2);
});

test('an event is not acknowledged after an onOther that throws, rejects or does not finish in time', async () => {
  const error = new Error('the queue is gone');
  const fail = (): never => {
    throw error;
  };
  for (const onOther of [fail, () => Promise.reject(error)]) {
    expect(await otherReceiver(onOther).receiver.receive(pending)).toMatchObject({ outcome: 'other_failed', error });
  }
  const onOther = vi.fn((_event: object, { signal }: { signal: AbortSignal }) =>
    signal.aborted ? undefined : never(),
  );
  const delivery = otherReceiver(onOther).receiver.receive(pending);
  await vi.advanceTimersByTimeAsync(699);
  expect(onOther.mock.calls[0]?.[1].signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await delivery).toMatchObject({
    outcome: 'other_failed',
    durationMs: 700,
    error: { code: 'HANDLER_TIMEOUT', message: containing('`onOther` did not finish within 700 ms.') },
  });
  expect(onOther.mock.calls[0]?.[1].signal.aborted).toBe(true);
});

test('onOther is not called for a stranger, and without it the event is invalid', async () => {
  const onOther = vi.fn();
  expect(await otherReceiver(onOther).receiver.receive(pending, { verify: () => false })).toMatchObject({
    outcome: 'unauthorized',
  });
  expect(onOther).not.toHaveBeenCalled();
  const { receiver, unexpected } = otherReceiver();
  expect(await receiver.receive(pending)).toMatchObject({
    outcome: 'invalid',
    id: '7',
    externalId: 'payout-1',
    issues: [{ path: ['event'], message: 'Not a final status, and there is no `onOther`' }],
  });
  expect(unexpected).not.toHaveBeenCalled();
});

test('the default schema makes no event without a final status', async () => {
  const onOther = vi.fn();
  const event = { ...transferSucceeded(), event: 'other' };
  expect(await receiverOf({ onOther }).receive(event)).toMatchObject({ outcome: 'invalid' });
  expect(onOther).not.toHaveBeenCalled();
});

test('close waits for onOther, then aborts it, and a closed receiver does not call it', async () => {
  const onOther = vi.fn((_event: object, { signal }: { signal: AbortSignal }) =>
    signal.aborted ? undefined : never(),
  );
  const { receiver } = otherReceiver(onOther);
  const delivery = receiver.receive(pending);
  const closed = receiver.close({ timeoutMs: 300 });
  expect(await receiver.receive(pending)).toMatchObject({ outcome: 'closing', id: '7' });
  await vi.advanceTimersByTimeAsync(300);
  expect(await delivery).toMatchObject({ outcome: 'closing', durationMs: 300 });
  expect(await closed).toEqual({ unfinished: 0, ids: [] });
  expect(onOther).toHaveBeenCalledTimes(1);
});
