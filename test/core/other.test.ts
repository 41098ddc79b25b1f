import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod/v4';
import {
  memoryStore,
  RetryLater,
  transferCallbackReceiver,
  type Logger,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/containing.js';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, later, receiverOf, withOthers } from './support.js';

beforeEach(fakeClock);

const paid = { type: 'charge.paid', data: { id: '7', amount: 1_000, currency: 'XAF', reference: 'deposit-1' } };

type OnOther = NonNullable<Parameters<typeof transferCallbackReceiver<z.output<typeof withOthers>>>[0]['onOther']>;

/** Makes a receiver of all events. Its `confirm` counts as a failure. */
function otherReceiver(onOther?: OnOther, logger: false | Logger = false) {
  const unexpected = vi.fn(() => {
    throw new Error('no');
  });
  const handler = vi.fn();
  const ended: TransferCallbackOutcome[] = [];
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    schema: withOthers,
    onSuccess: handler,
    onFailed: handler,
    confirm: (callback, { source }) => (source === 'confirmed' ? callback : unexpected()),
    onOther,
    onOutcome: (outcome) => ended.push(outcome),
    handlerTimeoutMs: 700,
    logger,
  });
  return { receiver, handler, unexpected, ended };
}

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

test.each([
  ['before', 0],
  ['after', 1],
])('another event with the id of a transfer, %s it, hinders neither', async (_when, at) => {
  const onOther = vi.fn();
  const { receiver, handler } = otherReceiver(onOther);
  const { data } = transferSucceeded();
  const other = { type: 'payout.pending', data: { ...data, status: 'PENDING' } };
  const order: unknown[] = [transferSucceeded(data)];
  order.splice(at, 0, other);
  for (const event of order) {
    expect(await receiver.receive(event, { source: 'confirmed' })).toMatchObject({ outcome: 'processed' });
  }
  expect(handler).toHaveBeenCalledTimes(1);
  expect(onOther).toHaveBeenCalledTimes(1);
  for (const event of order) {
    expect(await receiver.receive(event, { source: 'confirmed' })).toMatchObject({ outcome: 'duplicate' });
  }
});

const settledRecord = { state: 'settled', fingerprint: '["FAILED",15000,"XAF","payout"]' };

const longId = `other:${'😀'.repeat(249)}`;

test.each([
  ['other:charge.paid:7', 'other:charge.paid:7'],
  ['other:', 'other:'],
  ['other::7', 'other::7'],
  ['charge.paid:7', 'charge.paid:7'],
  ['other:, of 255 characters', longId],
])('a transfer whose id is %s keeps it, and shares no record with an event', async (_name, id) => {
  const logged: unknown[] = [];
  const info = (details: object): void => void logged.push((details as { id: unknown }).id);
  const traced: unknown[] = [];
  const note = (context: unknown): void => void traced.push((context as { id: unknown }).id);
  subscribe('tracing:transfer-callbacks:store:start', note);
  onTestFinished(() => void unsubscribe('tracing:transfer-callbacks:store:start', note));
  const { receiver, handler } = otherReceiver(vi.fn(), { ...recordingLogger(), info });
  const failed = transferFailed({ id, externalId: 'payout' });
  const ended = later<undefined>();
  handler.mockReturnValue(ended.promise);
  const delivery = receiver.receive(failed, { source: 'confirmed' });
  // While the transfer is handled, and afterwards.
  await vi.advanceTimersByTimeAsync(0);
  const event = await receiver.receive(paid);
  expect(event).toMatchObject({ outcome: 'processed', id: 'other:charge.paid:7' });
  expect(await receiver.inspect(id)).toMatchObject({
    state: 'claimed',
    here: { sinceMs: expect.any(Number) as number },
  });
  ended.resolve(undefined);
  expect(await delivery).toMatchObject({ outcome: 'processed', id });
  expect(await receiver.inspect(id)).toMatchObject(settledRecord);
  expect(new Set(traced)).toEqual(new Set([id, event.id]));
  expect(logged).toEqual([event.id, id]);
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'duplicate' });
  expect(await receiver.receive(failed, { source: 'confirmed' })).toMatchObject({ outcome: 'duplicate', id });
});

test('of a transfer and an event with one id, forget takes the one with the facts that were seen', async () => {
  const { receiver, handler } = otherReceiver(vi.fn(), recordingLogger());
  const { id = '' } = await receiver.receive(paid);
  const failed = transferFailed({ id, externalId: 'payout' });
  expect(await receiver.inspect(id)).toMatchObject({
    state: 'settled',
    fingerprint: '[null,1000,"XAF",null]',
  });
  await receiver.receive(failed, { source: 'confirmed' });
  expect(await receiver.inspect(id)).toMatchObject(settledRecord);
  const forget = (settled: string) => receiver.forget(id, { settled, by: 'me', reason: 'a test' });
  expect(await forget('[null,1000,"XAF",null]')).toBe(true);
  expect(await receiver.receive(failed, { source: 'confirmed' })).toMatchObject({ outcome: 'duplicate' });
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'processed' });
  expect(await forget(settledRecord.fingerprint)).toBe(true);
  expect(await receiver.receive(failed, { source: 'confirmed' })).toMatchObject({ outcome: 'processed' });
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'duplicate' });
  expect(handler).toHaveBeenCalledTimes(2);
});

test('a store without read forgets a transfer or an event by the facts that it was handled with', async () => {
  const { claim, forget } = memoryStore();
  const receiver = receiverOf({
    store: { claim, forget },
    schema: withOthers as never,
    onOther: () => undefined,
    logger: recordingLogger(),
  });
  const { id = '' } = await receiver.receive(paid);
  await receiver.receive(transferFailed({ id, externalId: 'payout' }));
  const why = { by: 'me', reason: 'a test' };
  for (const settled of ['[null,1000,"XAF",null]', settledRecord.fingerprint]) {
    expect(await receiver.forget(id, { settled, ...why })).toBe(true);
    expect(await receiver.forget(id, { settled, ...why })).toBe(false);
  }
});

test('two types with one id are two events, also if they contain the separator', async () => {
  const onOther = vi.fn();
  const schema = z.looseObject({ type: z.string(), data: z.looseObject({ id: z.string() }) }).transform((given) => ({
    event: 'other' as const,
    ...given,
  }));
  const handler = (): undefined => undefined;
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    schema,
    onSuccess: handler,
    onFailed: handler,
    onOther,
    logger: false,
  });
  const events = [
    ['a', 'b:c'],
    ['a:b', 'c'],
    ['a%3Ab', 'c'],
    ['a', '%3Ab:c'],
    ['A', 'b:c'],
  ].map(([type, id]) => ({ type, data: { id } }));
  for (const event of events) expect(await receiver.receive(event)).toMatchObject({ outcome: 'processed' });
  expect(onOther).toHaveBeenCalledTimes(events.length);
});

test('the record of an event is inspected and forgotten under the id of its outcome', async () => {
  const onOther = vi.fn();
  const { receiver } = otherReceiver(onOther, { warn: () => undefined, error: () => undefined });
  const { id = '' } = await receiver.receive(paid);
  const record = await receiver.inspect(id);
  expect(record).toMatchObject({ state: 'settled', fingerprint: '[null,1000,"XAF",null]' });
  const { fingerprint: settled } = record as { fingerprint: string };
  expect(await receiver.forget(id, { settled, by: 'me', reason: 'a test' })).toBe(true);
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'processed' });
  expect(onOther).toHaveBeenCalledTimes(2);
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
  [{ event: 'other', data: { id: '7' } }, 'Expected `schema` to produce a text for `type`, got undefined.'],
  [{ event: 'other', type: 'a' }, 'Expected `schema` to produce a text for `data.id`, got undefined.'],
  [
    { event: 'other', type: 'a', data: { id: 7 } },
    'Expected `schema` to produce a text for `data.id`, got a number. Write `String(id)`.',
  ],
])('of a schema that makes %j the error says what is missing', async (produced, message) => {
  const receiver = receiverOf({ schema: z.any().transform(() => produced) as never, onOther: vi.fn() });
  expect(await receiver.receive({})).toMatchObject({ outcome: 'invalid', error: { message } });
});

test.each([
  [{ type: 'a\u202Eb', data: { id: '7' } }, 'type'],
  [{ type: '', data: { id: '7' } }, 'type'],
  [{ type: 'a', data: { id: 'x'.repeat(250) } }, 'data.id'],
  [{ type: 'a', data: { id: '7\0' } }, 'data.id'],
])('%j has no name or id that could be a key', async (event, path) => {
  const receiver = receiverOf({
    schema: z.any().transform(() => ({ event: 'other', ...event })) as never,
    onOther: vi.fn(),
  });
  expect(await receiver.receive({})).toMatchObject({ outcome: 'invalid', issues: [{ path: path.split('.') }] });
});

test('onOther is not called for a stranger, and without it the event is invalid', async () => {
  const onOther = vi.fn();
  const verify = vi.fn((callback: unknown) => callback !== undefined);
  expect(await otherReceiver(onOther).receiver.receive(paid, { verify })).toMatchObject({ outcome: 'unauthorized' });
  expect(verify.mock.calls).toEqual([[undefined]]);
  expect(onOther).not.toHaveBeenCalled();
  const { receiver } = otherReceiver();
  expect(await receiver.receive(paid)).toMatchObject({
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

test('of a fact of another event that has a wrong type the error says what is missing', async () => {
  const receiver = transferCallbackReceiver({
    ...{ store: memoryStore(), onSuccess: () => undefined, onFailed: () => undefined, onOther: () => undefined },
    schema: z.any().transform((data: object) => ({ event: 'other' as const, type: 'a', data: { id: '7', ...data } })),
    logger: false,
  });
  expect(await receiver.receive({ status: 1 })).toMatchObject({
    outcome: 'invalid',
    error: {
      message:
        'Expected `schema` to produce a text or undefined for `data.status`, got a number. Write `String(status)`.',
    },
  });
});

test('the key of a transfer has at most the characters of its id', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const receiver = receiverOf({ store });
  for (const id of ['payout:1', longId]) {
    await receiver.receive(transferSucceeded({ id }));
    expect(Array.from(String(claim.mock.lastCall?.[0]))).toHaveLength(Array.from(id).length);
  }
});
