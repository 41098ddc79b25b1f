import { beforeEach, expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { isOtherId } from '../../src/core/callback.js';
import { otherReceiver, paid } from './other-support.js';
import { define, states } from './service-support.js';
import { fakeClock, later, otherService, receiverOf } from './support.js';
import { listen } from '../support/helpers/listen.js';

beforeEach(fakeClock);

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
  const logged: unknown[] = [];
  const info = (details: object): void => void logged.push((details as { id: unknown }).id);
  const traced: unknown[] = [];
  const note = (context: unknown): void => void traced.push((context as { id: unknown }).id);
  listen('tracing:transfer-callbacks:store:start', note);
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
  expect(await receiver.inspect(id)).toMatchObject(handledRecord);
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
    state: 'handled',
    fingerprint: '[null,1000,"XAF",null]',
  });
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
  const receiver = receiverOf({
    store: { claim, forget },
    service: otherService as never,
    onOther: () => undefined,
    logger: recordingLogger(),
  });
  const { id = '' } = await receiver.receive(paid);
  await receiver.receive(transferFailed({ id, externalId: 'payout' }));
  const why = { by: 'me', reason: 'a test' };
  for (const fingerprint of ['[null,1000,"XAF",null]', handledRecord.fingerprint]) {
    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(true);
    expect(await receiver.forget(id, { fingerprint, ...why })).toBe(false);
  }
});

test('two types with one id are two events, also if they contain the separator', async () => {
  const onOther = vi.fn();
  const names = { a: 'OTHER', 'a:b': 'OTHER', 'a%3Ab': 'OTHER', A: 'OTHER' } as const;
  const receiver = receiverOf({
    service: define({ states: { ...states, ...names }, read: readOther }) as never,
    onOther,
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

test.each([
  ['a long id', 'x'.repeat(250)],
  ['a control character in its id', '7\0'],
])('an event with %s is invalid, because its key would not do', async (_what, id) => {
  const service = define({ states: { ...states, a: 'OTHER' }, read: readOther });
  const receiver = receiverOf({ service: service as never, onOther: vi.fn() });
  expect(await receiver.receive({ type: 'a', data: { id } })).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: ['id'] }],
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
