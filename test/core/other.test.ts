import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, RetryLater } from 'transfer-callbacks';
import { containing } from '../support/helpers/containing.js';
import { otherReceiver, paid, type OnOther } from './other-support.js';
import { fakeClock, later, otherService, receiverOf } from './support.js';

beforeEach(fakeClock);

test('copies of another event wait for onOther, which runs once, without confirm', async () => {
  const done = later<undefined>();
  const afterwards = vi.fn();
  const onOther = vi.fn<OnOther>((_event, { afterCommit }) => {
    afterCommit(afterwards);
    return done.promise;
  });
  const { receiver, unexpected, ended } = otherReceiver(onOther);
  const copies = Array.from({ length: 5 }, () => receiver.receive(paid, { source: 'queue' }));
  await vi.advanceTimersByTimeAsync(600);
  expect(ended).toEqual([]);
  done.resolve(undefined);
  const outcomes = await Promise.all(copies);
  expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual([...Array<string>(4).fill('duplicate'), 'processed']);
  const [first] = outcomes;
  expect(first).toEqual({
    outcome: 'processed',
    overlapped: false,
    event: 'other',
    type: 'charge.paid',
    id: 'other:charge.paid:7',
    delivery: expect.any(String) as string,
    source: 'queue',
    durationMs: 600,
    waitedMs: 0,
  });
  expect(onOther.mock.calls).toEqual([
    [
      { event: 'other', ...paid },
      {
        delivery: first?.delivery,
        source: 'queue',
        signal: expect.any(AbortSignal) as AbortSignal,
        tx: undefined,
        afterCommit: expect.any(Function) as () => void,
      },
    ],
  ]);
  expect(unexpected).not.toHaveBeenCalled();
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'duplicate' });
  expect(onOther).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => {
    expect(afterwards).toHaveBeenCalledTimes(1);
  });
});

test('an event is not acknowledged after an onOther that throws, rejects, asks for later or does not finish in time', async () => {
  const error = new Error('the queue is gone');
  const fail = (): never => {
    throw error;
  };
  for (const onOther of [fail, () => Promise.reject(error)]) {
    expect(await otherReceiver(onOther).receiver.receive(paid)).toMatchObject({ outcome: 'handler_failed', error });
  }
  const onOther = vi.fn<OnOther>(() => {
    throw new RetryLater('closed', { retryAfterMs: 40_000 });
  });
  const { receiver } = otherReceiver(onOther);
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 40_000 });
  onOther.mockImplementation(
    (_event, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      }),
  );
  const delivery = receiver.receive(paid);
  await vi.advanceTimersByTimeAsync(700);
  expect(await delivery).toMatchObject({
    outcome: 'timed_out',
    durationMs: 700,
    error: { code: 'HANDLER_TIMEOUT', message: containing('did not finish within 700 ms.') },
  });
});

test('the store gets the name of an event, and its externalId', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const receiver = receiverOf({ store, service: otherService as never, onOther: vi.fn() });
  await receiver.receive({ ...paid, data: { ...paid.data, externalId: 'deposit-1' } });
  expect(claim.mock.calls).toMatchObject([['other:charge.paid:7', { event: 'charge.paid', externalId: 'deposit-1' }]]);
});

test('an event with other facts than were handled is a conflict', async () => {
  const { receiver } = otherReceiver(vi.fn());
  await receiver.receive(paid);
  expect(await receiver.receive({ ...paid, data: { ...paid.data, amount: 2_000 } })).toMatchObject({
    outcome: 'conflict',
    recorded: { amount: 1_000 },
    received: { amount: 2_000 },
  });
});

test('onOther is not called for a stranger', async () => {
  const onOther = vi.fn();
  const verify = vi.fn((callback: unknown) => callback !== undefined);
  expect(await otherReceiver(onOther).receiver.receive(paid, { verify })).toMatchObject({ outcome: 'unauthorized' });
  expect(verify.mock.calls).toEqual([[undefined]]);
  expect(onOther).not.toHaveBeenCalled();
});

test('close waits for onOther, then aborts it, and a closed receiver does not call it', async () => {
  const onOther = vi.fn<OnOther>(
    (_event, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      }),
  );
  const { receiver } = otherReceiver(onOther);
  const delivery = receiver.receive(paid);
  await vi.advanceTimersByTimeAsync(0);
  const closed = receiver.close({ timeoutMs: 300 });
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'closing', id: 'other:charge.paid:7' });
  await vi.advanceTimersByTimeAsync(300);
  expect(await delivery).toMatchObject({ outcome: 'processed', durationMs: 300 });
  expect(await closed).toEqual({ unfinished: 0, ids: [] });
  expect(onOther).toHaveBeenCalledTimes(1);
});

test('reconciliation makes no other event', async () => {
  const onOther = vi.fn();
  const { receiver } = otherReceiver(onOther);
  expect(await receiver.receive(paid, { source: 'reconciliation' })).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: ['event'] }],
  });
  expect(onOther).not.toHaveBeenCalled();
});
