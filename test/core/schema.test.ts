import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import * as mini from 'zod/v4-mini';
import { memoryStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
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

test.each([
  ['a failure that contradicts the status', { ...transferSucceeded(), event: 'transfer.failed' }, 'status'],
  ['an event that contradicts the status', { ...transferFailed(), event: 'transfer.success' }, 'status'],
  ['an empty id', transferSucceeded({ id: '' }), 'id'],
  ['an amount beyond 2^53', transferSucceeded({ amount: 2 ** 53 }), 'amount'],
  // All such amounts would be one fact.
  ['an amount that is not finite', transferSucceeded({ amount: 1e309 }), 'amount'],
])('a loose custom schema does not let %s through', async (_name, callback, field) => {
  const handler = vi.fn();
  const receiver = receiverOf({ schema, onSuccess: handler, onFailed: handler });
  expect(await receiver.receive(callback)).toMatchObject({
    outcome: 'invalid',
    issues: [{ path: ['data', field] }],
  });
  expect(handler).not.toHaveBeenCalled();
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
  const receiver = transferCallbackReceiver({ store: memoryStore(), schema: made, onSuccess, onFailed: onSuccess });
  expect(await receiver.receive(transferSucceeded({ id: 'tr-1', amount: 5 }))).toMatchObject({
    outcome: 'processed',
    id: 'tr-1',
  });
  expect(onSuccess.mock.calls).toMatchObject([[{ data: { id: 'tr-1', amount: '5' } }, {}]]);
});

test('a copy whose amount is written in another way is a duplicate, and confirm may read it so', async () => {
  const onSuccess = vi.fn();
  const handlers = { store: memoryStore(), schema, onSuccess } as const;
  const receiver = receiverOf(handlers);
  const confirming = receiverOf({
    ...handlers,
    confirm: (callback) => ({ ...callback, data: { ...callback.data, amount: '100.00' } }) as never,
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
  const keep =
    'Expected `schema` to keep `event`, `data.id` and `data.status` of the callback. For another service write ' +
    '`service: defineService({ read, states })`.';
  const money = 'Expected `schema` to make `data.amount` and `data.currency`, got undefined.';
  type Make = (given: TransferCallback) => unknown;
  const failed = { event: 'transfer.failed', data: { ...transferFailed().data, id: 'a' } };
  const inPlace = (changes: object): Make => {
    return (given) => {
      Object.assign(given.data, changes);
      return given;
    };
  };

  test.each<[string, Make, string]>([
    ['has another id', ({ event, data }) => ({ event, data: { ...data, id: `${data.id}-1` } }), keep],
    ['has another event and status', () => failed, keep],
    ['has another event', (given) => ({ ...given, event: 'transfer.failed' }), keep],
    ['has another status', ({ event, data }) => ({ event, data: { ...data, status: 'FAILED' } }), keep],
    ['is the same, with another id', inPlace({ id: 'b' }), keep],
    ['is the same, with another status', inPlace({ status: 'FAILED' }), keep],
    ['has no amount', ({ event, data }) => ({ event, data: { ...data, amount: undefined } }), money],
    ['has no currency', ({ event, data }) => ({ event, data: { ...data, currency: undefined } }), money],
  ])('if it %s', async (_what, make, message) => {
    const logger = recordingLogger();
    const handler = vi.fn();
    const transforming = z.any().transform((given: TransferCallback) => make(given));
    const options = { schema: transforming as never, onSuccess: handler, onFailed: handler, logger };
    const outcome = await receiverOf(options).receive(transferSucceeded({ id: 'a' }));
    expect(outcome).toMatchObject({ outcome: 'invalid', error: { code: 'INVALID_ARGUMENT', message } });
    expect(toResponse(outcome).status).toBe(500);
    expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('at fault') as string }]);
    expect(handler).not.toHaveBeenCalled();
  });

  test('and so is one that makes a callback of another service', async () => {
    const onSuccess = vi.fn();
    const transforming = z.object({ paid: z.string() }).transform(({ paid }) => ({
      event: 'transfer.success',
      data: { ...transferSucceeded().data, id: paid },
    }));
    const receiver = receiverOf({ schema: transforming as never, onSuccess });
    expect(await receiver.receive({ paid: 'p-1' })).toMatchObject({ outcome: 'invalid', error: { message: keep } });
    expect(onSuccess).not.toHaveBeenCalled();
  });
});

test.each([
  ['nothing', undefined],
  ['no callback', {}],
  ['null for data', { event: 'transfer.success', data: null }],
])('a schema that makes %s is a fault of this app, and is logged as one', async (_what, made) => {
  const logger = recordingLogger();
  const onSuccess = vi.fn();
  const receiver = receiverOf({ schema: z.any().transform(() => made) as never, logger, onSuccess });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({
    outcome: 'invalid',
    error: { code: 'INVALID_ARGUMENT' },
  });
  expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('at fault') as string }]);
  expect(onSuccess).not.toHaveBeenCalled();
});

describe('a schema that makes a wrong field', () => {
  /** Resolves with what the error tells of a schema that makes these fields in place of the documented ones. */
  async function tell(fields: object, event: unknown = 'transfer.success'): Promise<string> {
    const { data } = transferSucceeded();
    const made = { event, data: { ...data, ...fields } };
    const outcome = await receiverOf({ schema: z.any().transform(() => made) as never }).receive({ event, data });
    return outcome.outcome === 'invalid' ? (outcome.error as Error).message : outcome.outcome;
  }

  const phone = ['237', '670', '000', '000'];

  test.each<[object, path: string, expected: string, got: string]>([
    [{ id: 5 }, 'id', 'a string', 'a value of type number'],
    [{ externalId: 5n }, 'externalId', 'a string', 'a value of type bigint'],
    [{ externalId: undefined }, 'externalId', 'a string', 'undefined'],
    [{ status: true }, 'status', 'a string', 'a value of type boolean'],
    [{ amount: 15_000n }, 'amount', 'a number or a string, or undefined', 'a value of type bigint'],
    [{ amount: { value: 5 } }, 'amount', 'a number or a string, or undefined', 'a value of type object'],
    [{ currency: null }, 'currency', 'a string, or undefined', 'null'],
    [{ currency: phone }, 'currency', 'a string, or undefined', 'an array'],
  ])('is told which, and of the value its kind: %o', async (fields, path, expected, got) => {
    expect(await tell(fields)).toBe(`Expected \`schema\` to make \`data.${path}\` ${expected}, got ${got}.`);
  });

  test('an event that is no string is named', async () => {
    expect(await tell({}, 5)).toBe('Expected `schema` to make `event` a string, got a value of type number.');
  });
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
  const receiver = receiverOf({ schema: z.any().transform(() => ({ event, data: readOnce })) as never });
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
  ['the documented schema', undefined],
  ['a schema of one’s own', schema],
])('a key `__proto__` of a parsed callback reaches no prototype under %s', async (_name, given) => {
  const onSuccess = vi.fn();
  expect(await receiverOf({ schema: given, onSuccess }).receive(hostile())).toMatchObject({ outcome: 'processed' });
  const [{ data }] = onSuccess.mock.calls[0] as [TransferCallback];
  expect(data).not.toHaveProperty('isAdmin');
  expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
  for (const borrowed of [{ __proto: hostile() }, { event: 'transfer.success', __proto: hostile() }]) {
    const text = JSON.stringify(borrowed).replace('"__proto"', '"__proto__"');
    expect(await receiverOf({ schema: given }).receive(JSON.parse(text))).toMatchObject({ outcome: 'invalid' });
  }
  // A handler that copies the object key by key would set its prototype.
  expect(Object.hasOwn(data.bankAccount ?? {}, '__proto__')).toBe(false);
});
