import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import * as mini from 'zod/v4-mini';
import { memoryStore, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { transferService } from 'transfer-callbacks/client';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
import { toResponse } from '../../src/http/responses.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { receiverOf } from './support.js';

/** A schema of an author who wants everything loose. */
const schema = z.looseObject({
  event: z.enum(['transfer.success', 'transfer.failed']),
  data: z.looseObject({
    id: z.string(),
    externalId: z.string(),
    status: z.enum(['SUCCESS', 'FAILED']),
    amount: z.any(),
    currency: z.string(),
  }),
}) as unknown as StandardSchema<TransferCallback>;

/** A receiver whose callbacks are read by this schema. */
const receiverFor = (payload: unknown, options: object = {}) =>
  receiverOf({ service: transferService({ payload: payload as never }) as never, ...options });

test.each([
  ['a failure that contradicts the status', { ...transferSucceeded(), event: 'transfer.failed' }, 'status'],
  ['an event that contradicts the status', { ...transferFailed(), event: 'transfer.success' }, 'status'],
  ['an empty id', transferSucceeded({ id: '' }), 'id'],
  ['an amount beyond 2^53', transferSucceeded({ amount: 2 ** 53 }), 'amount'],
  // All such amounts would be one fact.
  ['an amount that is not finite', transferSucceeded({ amount: 1e309 }), 'amount'],
])('a loose custom schema does not let %s through', async (_name, callback, field) => {
  const handler = vi.fn();
  const receiver = receiverFor(schema, { onSuccess: handler, onFailed: handler });
  expect(await receiver.receive(callback)).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: ['data', field] }],
  });
  expect(handler).not.toHaveBeenCalled();
});

test('an event that is not final is refused, even if a custom schema has no rules', async () => {
  const issues = [{ path: ['event'], message: 'Expected transfer.success or transfer.failed' }];
  const callback = { ...transferSucceeded(), event: 'transfer.pending' };
  expect(await receiverFor(z.unknown()).receive(callback)).toMatchObject({ outcome: 'invalid', issues });
});

test('a schema of zod/mini works, and may make the amount a string', async () => {
  const onSuccess = vi.fn();
  const data = { id: mini.string(), externalId: mini.string(), status: mini.literal('SUCCESS') };
  const made = mini.looseObject({
    event: mini.literal('transfer.success'),
    data: mini.looseObject({
      ...data,
      amount: mini.pipe(mini.number(), mini.transform(String)),
      currency: mini.string(),
    }),
  });
  const receiver = receiverFor(made, { onSuccess });
  expect(await receiver.receive(transferSucceeded({ id: 'tr-1', amount: 5 }))).toMatchObject({
    outcome: 'processed',
    id: 'tr-1',
  });
  expect(onSuccess.mock.calls).toMatchObject([[{ data: { id: 'tr-1', amount: '5' } }, {}]]);
});

test('the time of a callback is what the schema makes of it, if that is text', async () => {
  const timestamp = '2026-01-15T10:30:00Z';
  for (const [made, shown] of [
    ['today', 'today'],
    [new Date(timestamp), undefined],
  ]) {
    const payload = z.any().transform(({ event, data }: TransferCallback) => ({
      event,
      data: { ...data, timestamp: made },
    }));
    const outcome = await receiverFor(payload).receive(transferSucceeded({ timestamp }));
    expect(outcome).toMatchObject({ outcome: 'processed', timestamp: shown });
  }
});

test('a copy whose amount is written in another way is a duplicate, and confirm may read it so', async () => {
  const onSuccess = vi.fn();
  const handlers = { store: memoryStore(), service: transferService({ payload: schema }), onSuccess } as const;
  const receiver = receiverOf(handlers);
  const confirming = receiverOf({
    ...handlers,
    confirm: (callback) => ({ ...callback, data: { ...callback.data, amount: '100.00' } }),
  });
  const { data } = transferSucceeded();
  const receive = (id: string, amount: unknown, by = receiver) =>
    by.receive({ event: 'transfer.success', data: { ...data, id, amount } });
  expect(await receive('a', 100)).toMatchObject({ outcome: 'processed' });
  for (const amount of ['100', '100.00']) expect(await receive('a', amount)).toMatchObject({ outcome: 'duplicate' });
  expect(await receive('a', '100.01')).toMatchObject({ outcome: 'conflict' });
  expect(await receive('b', 100, confirming)).toMatchObject({ outcome: 'processed' });
  expect(onSuccess.mock.lastCall?.[0]).toMatchObject({ data: { id: 'b', amount: '100.00' } });
  expect(await receive('c', '9007199254740993')).toMatchObject({ outcome: 'processed' });
  expect(await receive('c', '9007199254740992')).toMatchObject({ outcome: 'conflict' });
  expect(onSuccess).toHaveBeenCalledTimes(3);
});

describe('a schema that makes another callback is refused', () => {
  const message =
    'Expected `payload` to keep `event`, `data.id` and `data.status` of the callback. For another service write ' +
    '`service: defineService({ read, states })`.';
  type Make = (given: TransferCallback) => unknown;
  const failed = { event: 'transfer.failed', data: { ...transferFailed().data, id: 'a' } };
  const inPlace = (changes: object): Make => {
    return (given) => {
      Object.assign(given.data, changes);
      return given;
    };
  };

  test.each<[string, Make]>([
    ['is none', () => undefined],
    ['has no data', ({ event }) => ({ event, data: null })],
    ['has another id', ({ event, data }) => ({ event, data: { ...data, id: `${data.id}-1` } })],
    ['has another event and status', () => failed],
    ['has another event', (given) => ({ ...given, event: 'transfer.failed' })],
    ['has another status', ({ event, data }) => ({ event, data: { ...data, status: 'FAILED' } })],
    ['is the same, with another id', inPlace({ id: 'b' })],
    ['is the same, with another status', inPlace({ status: 'FAILED' })],
  ])('if it %s', async (_what, make) => {
    const logger = recordingLogger();
    const handler = vi.fn();
    const payload = z.any().transform((given: TransferCallback) => make(given));
    const receiver = receiverFor(payload, { onSuccess: handler, onFailed: handler, logger });
    const outcome = await receiver.receive(transferSucceeded({ id: 'a' }));
    expect(outcome).toMatchObject({ outcome: 'invalid', error: { code: 'INVALID_ARGUMENT', message } });
    expect(toResponse(outcome).status).toBe(500);
    expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('at fault') as string }]);
    expect(handler).not.toHaveBeenCalled();
  });
});

test.each<[fields: object, name: string]>([
  [{ externalId: undefined }, 'externalId'],
  [{ externalId: 5n }, 'externalId'],
  [{ amount: 15_000n }, 'amount'],
  [{ amount: null }, 'amount'],
  [{ currency: ['237', '670'] }, 'currency'],
  [{ currency: 5 }, 'currency'],
])('of what a schema makes, the wrong field is named, and no handler runs: %o', async (fields, name) => {
  const onSuccess = vi.fn();
  const payload = z.any().transform((given: TransferCallback) => ({ ...given, data: { ...given.data, ...fields } }));
  expect(await receiverFor(payload, { onSuccess }).receive(transferSucceeded())).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: ['data', name] }],
  });
  expect(onSuccess).not.toHaveBeenCalled();
});

test('each field is read once, because what a schema makes may change or throw when it is read again', async () => {
  const { event, data } = transferSucceeded();
  const reads = new Set<PropertyKey>();
  const readOnce = new Proxy(data, {
    get(target, name): unknown {
      if (reads.has(name)) throw new Error('read again');
      reads.add(name);
      return Reflect.get(target, name);
    },
  });
  const receiver = receiverFor(z.any().transform(() => ({ event, data: readOnce })));
  expect(await receiver.receive({ event, data })).toMatchObject({
    outcome: 'processed',
    id: data.id,
    status: 'SUCCESS',
  });
  expect(await receiver.close({ timeoutMs: 5_000 })).toEqual({ unfinished: 0, ids: [] });
});

const hostile = (): unknown => {
  const { data } = transferSucceeded({ paymentMethod: 'bank', walletNumber: null, bankAccount: { prototype: 0 } });
  const text = JSON.stringify({ event: 'transfer.success', data: { ...data, prototype: 0 } });
  return JSON.parse(text.replaceAll('"prototype":0', '"__proto__":{"isAdmin":true,"toString":null}'));
};

test.each([
  ['the documented schema', {}],
  ['a schema of one’s own', { service: transferService({ payload: schema }) }],
])('a key `__proto__` of a parsed callback reaches no prototype under %s', async (_name, service) => {
  const onSuccess = vi.fn();
  expect(await receiverOf({ ...service, onSuccess }).receive(hostile())).toMatchObject({ outcome: 'processed' });
  const [{ data }] = onSuccess.mock.calls[0] as [TransferCallback];
  expect(data).not.toHaveProperty('isAdmin');
  expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
  for (const borrowed of [{ __proto: hostile() }, { event: 'transfer.success', __proto: hostile() }]) {
    const text = JSON.stringify(borrowed).replace('"__proto"', '"__proto__"');
    expect(await receiverOf(service).receive(JSON.parse(text))).toMatchObject({ outcome: 'invalid' });
  }
  // A handler that copies the object key by key would set its prototype.
  expect(Object.hasOwn(data.bankAccount ?? {}, '__proto__')).toBe(false);
});
