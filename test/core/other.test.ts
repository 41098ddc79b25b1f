import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { memoryStore, RetryLater } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/helpers/containing.js';
import { otherReceiver, paid, type OnOther } from './other-support.js';
import { fakeClock, later, receiverOf } from './support.js';

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
  const schema = z.any().transform((given) => ({ event: 'other', ...given }) as never);
  const receiver = receiverOf({ store, schema, onOther: vi.fn() });
  await receiver.receive({ ...paid, data: { ...paid.data, externalId: 'deposit-1' } });
  expect(claim.mock.calls).toMatchObject([['other:charge.paid:7', { event: 'charge.paid', externalId: 'deposit-1' }]]);
});

test('an event with other facts than were handled is a conflict', async () => {
  const { receiver } = otherReceiver(vi.fn());
  await receiver.receive(paid);
  expect(await receiver.receive({ ...paid, data: { ...paid.data, status: 'reversed' } })).toMatchObject({
    outcome: 'conflict',
    received: { status: 'reversed' },
  });
  expect(await receiver.receive({ ...paid, data: { ...paid.data, amount: 2_000 } })).toMatchObject({
    outcome: 'conflict',
    settled: { amount: 1_000 },
    received: { amount: 2_000 },
  });
});

test('a final status that the schema takes for another event is invalid', async () => {
  const onOther = vi.fn();
  const schema = z.looseObject({ event: z.string(), data: z.looseObject({ id: z.string() }) });
  const receiver = receiverOf({
    schema: schema.transform(({ event, data }) => ({ event: 'other', type: event, data })) as never,
    onOther,
  });
  for (const event of [transferSucceeded(), transferFailed()]) {
    expect(await receiver.receive(event)).toMatchObject({
      outcome: 'invalid',
      id: event.data.id,
      issues: [{ path: ['event'], message: 'A final status, and `schema` makes another event of it' }],
    });
  }
  expect(await receiver.receive({ ...transferFailed(), event: 'transfer.pending' })).toMatchObject({
    outcome: 'processed',
  });
  expect(onOther).toHaveBeenCalledTimes(1);
});

test.each([
  [{ event: 'other', data: { id: '7' } }, 'Expected `schema` to make `type` a string, got undefined.'],
  [{ event: 'other', type: 'a' }, 'Expected `schema` to make `data.id` a string, got undefined.'],
  [
    { event: 'other', type: 'a', data: { id: 7 } },
    'Expected `schema` to make `data.id` a string, got a value of type number.',
  ],
  [
    { event: 'other', type: 'a', data: { id: '7', status: 1 } },
    'Expected `schema` to make `data.status` a string, or undefined, got a value of type number.',
  ],
])('of a schema that makes %j the error says what is missing', async (produced, message) => {
  const receiver = receiverOf({ schema: z.any().transform(() => produced) as never, onOther: vi.fn() });
  expect(await receiver.receive({})).toMatchObject({ outcome: 'invalid', error: { message } });
});

test('onOther is not called for a stranger, and without it the event is invalid', async () => {
  const onOther = vi.fn();
  const verify = vi.fn((callback: unknown) => callback !== undefined);
  expect(await otherReceiver(onOther).receiver.receive(paid, { verify })).toMatchObject({ outcome: 'unauthorized' });
  expect(verify.mock.calls).toEqual([[undefined]]);
  expect(onOther).not.toHaveBeenCalled();
  const { receiver } = otherReceiver();
  expect(await receiver.receive({ ...paid, data: { ...paid.data, externalId: 'deposit-1' } })).toMatchObject({
    outcome: 'invalid',
    id: '7',
    externalId: 'deposit-1',
    issues: [{ path: ['event'], message: 'Not a final status, and no `onOther` takes it' }],
  });
});

test('the default schema makes no other event', async () => {
  const onOther = vi.fn();
  const event = { ...transferSucceeded(), event: 'other' };
  expect(await receiverOf({ onOther }).receive(event)).toMatchObject({ outcome: 'invalid' });
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
