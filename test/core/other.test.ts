import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore, RetryLater, type HandlerContext, type Logger } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { isOtherId } from '../../src/core/callback.js';
import { containing } from '../support/helpers/containing.js';
import { listen } from '../support/helpers/listen.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { announced, define, serve, states } from './service-support.js';
import { fakeClock, later, otherService, receiverOf } from './support.js';

beforeEach(fakeClock);

/** An event of `onOther`. */
const paid = {
  type: 'charge.paid',
  data: { id: '7', status: 'SUCCESS', amount: 1_000, currency: 'XAF', reference: 'deposit-1' },
};

type OnOther = (event: unknown, context: HandlerContext) => unknown;

/** Makes a receiver of all events. Its `confirm` counts as a failure. */
function otherReceiver(onOther: OnOther = vi.fn(), logger: false | Logger = false) {
  const unexpected = vi.fn(() => {
    throw new Error('no');
  });
  const [handler, onOutcome] = [vi.fn(), vi.fn()];
  const receiver = receiverOf({
    service: otherService as never,
    onSuccess: handler,
    onFailed: handler,
    confirm: (_callback, { source }) => source === 'confirmed' || unexpected(),
    onOther,
    onOutcome,
    handlerTimeoutMs: 700,
    logger,
  });
  return { receiver, handler, unexpected, onOutcome };
}

test('copies of another event wait for onOther, which runs once, without confirm', async () => {
  const done = later();
  const afterwards = vi.fn();
  const onOther = vi.fn<OnOther>((_event, { afterCommit }) => {
    afterCommit(afterwards);
    return done.promise;
  });
  const { receiver, unexpected, onOutcome } = otherReceiver(onOther);
  const copies = Array.from({ length: 5 }, () => receiver.receive(paid, { source: 'queue' }));
  await vi.advanceTimersByTimeAsync(600);
  expect(onOutcome).not.toHaveBeenCalled();
  done.resolve();
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

const readOther = ({ type, data }: { type: string; data: { id: string } }) => ({ state: type, id: data.id });

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

const handledRecord = { state: 'handled', fingerprint: '["FAILED",15000,"XAF","payout"]' };

const longId = `other:${'😀'.repeat(249)}`;

test.each([
  ['other:charge.paid:7', 'other:charge.paid:7'],
  ['other:', 'other:'],
  ['other::7', 'other::7'],
  ['charge.paid:7', 'charge.paid:7'],
  ['other:, of 255 characters', longId],
])('a transfer whose id is %s keeps it, and shares no record with an event', async (_name, id) => {
  const info = vi.fn();
  const traced: unknown[] = [];
  listen('tracing:transfer-callbacks:store:start', (context) => traced.push((context as { id: unknown }).id));
  const { receiver, handler } = otherReceiver(vi.fn(), { ...recordingLogger(), info });
  const failed = transferFailed({ id, externalId: 'payout' });
  const ended = later();
  handler.mockReturnValue(ended.promise);
  const delivery = receiver.receive(failed, { source: 'confirmed' });
  // While the transfer is handled, and afterwards.
  await vi.advanceTimersByTimeAsync(0);
  const event = await receiver.receive(paid);
  expect(event).toMatchObject({ outcome: 'processed', id: 'other:charge.paid:7' });
  expect(await receiver.inspect(id)).toMatchObject({ state: 'claimed', here: { sinceMs: 0 } });
  ended.resolve();
  expect(await delivery).toMatchObject({ outcome: 'processed', id });
  expect(await receiver.inspect(id)).toMatchObject(handledRecord);
  expect(new Set(traced)).toEqual(new Set([id, event.id]));
  const line = 'A callback was handled.';
  expect(info.mock.calls).toMatchObject([
    [{ id: event.id }, line],
    [{ id }, line],
  ]);
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'duplicate' });
  expect(await receiver.receive(failed, { source: 'confirmed' })).toMatchObject({ outcome: 'duplicate', id });
});

test('of a transfer and an event with one id, forget takes the one with the facts that were seen', async () => {
  const { receiver, handler } = otherReceiver(vi.fn(), recordingLogger());
  const { id = '' } = await receiver.receive(paid);
  const failed = transferFailed({ id, externalId: 'payout' });
  expect(await receiver.inspect(id)).toMatchObject({ state: 'handled', fingerprint: '[null,1000,"XAF",null]' });
  await receiver.receive(failed, { source: 'confirmed' });
  expect(await receiver.inspect(id)).toMatchObject(handledRecord);
  const forget = (fingerprint: string) => receiver.forget(id, { fingerprint, by: 'me', reason: 'a test' });
  expect(await forget('[null,1000,"XAF",null]')).toBe(true);
  expect(await receiver.receive(failed, { source: 'confirmed' })).toMatchObject({ outcome: 'duplicate' });
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'processed' });
  expect(await forget(handledRecord.fingerprint)).toBe(true);
  expect(await receiver.receive(failed, { source: 'confirmed' })).toMatchObject({ outcome: 'processed' });
  expect(await receiver.receive(paid)).toMatchObject({ outcome: 'duplicate' });
  expect(handler).toHaveBeenCalledTimes(2);
});

test('a store without read forgets a transfer or an event by the facts that it was handled with', async () => {
  const { claim, forget } = memoryStore();
  const logger = recordingLogger();
  const service = otherService as never;
  const receiver = receiverOf({ store: { claim, forget }, service, onOther: () => undefined, logger });
  const { id = '' } = await receiver.receive(paid);
  await receiver.receive(transferFailed({ id, externalId: 'payout' }));
  const why = { by: 'me', reason: 'a test' };
  for (const fingerprint of ['[null,1000,"XAF",null]', handledRecord.fingerprint]) {
    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);
    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(false);
  }
  expect(logger.lines[0]?.details).not.toHaveProperty('delivery');
});

test('two types with one id are two events, also if they contain the separator', async () => {
  const onOther = vi.fn();
  const names = { a: 'OTHER', 'a:b': 'OTHER', 'a%3Ab': 'OTHER', A: 'OTHER' } as const;
  const service = define({ states: { ...states, ...names }, read: readOther }) as never;
  const receiver = receiverOf({ service, onOther });
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

test('the key of a transfer has at most the characters of its id', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const receiver = receiverOf({ store });
  for (const id of ['payout:1', longId]) {
    await receiver.receive(transferSucceeded({ id }));
    expect(Array.from(String(claim.mock.lastCall?.[0]))).toHaveLength(Array.from(id).length);
  }
});

test.each([
  ['other:charge.paid:7', true],
  ['other:a:\u{1F4B8}', true],
  ['other::7', false],
  ['other:charge.paid:', false],
  ['other:charge.paid', false],
  ['another:charge.paid:7', false],
])('whether %j may be the id of another event: %s', (id, expected) => {
  expect(isOtherId(id)).toBe(expected);
});

test('the key of an event of onOther has at most 255 characters, and none that is not printable', async () => {
  const { receive, receiver } = serve({ states: { ...states, 'charge.paid': 'OTHER' } }, { onOther: () => undefined });
  const longest = 'x'.repeat(255 - 'other:charge.paid:'.length);
  const outcome = await receive(announced('charge.paid', { id: longest }));
  expect(outcome).toMatchObject({ outcome: 'processed', id: `other:charge.paid:${longest}` });
  expect(await receiver.inspect(String(outcome.id))).toMatchObject({ state: 'handled' });
  const message = 'Expected a shorter one: `other:charge.paid:` and it have at most 255 characters';
  for (const [id, issue] of [
    [`${longest}x`, { message }],
    ['😀'.repeat(longest.length + 1), { message }],
    ['7\0', {}],
  ] as const) {
    const invalid = { outcome: 'invalid', issues: [{ path: ['id'], ...issue }] };
    expect(await receive(announced('charge.paid', { id }))).toMatchObject(invalid);
  }
});
