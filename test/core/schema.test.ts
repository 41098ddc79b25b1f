import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import * as mini from 'zod/v4-mini';
import { memoryStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
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

test('a schema of zod/mini works, and may make the amount a text', async () => {
  const onSuccess = vi.fn();
  const made = mini.pipe(
    mini.looseObject({ kind: mini.literal('paid'), transfer: mini.string() }),
    mini.transform(({ transfer }) => ({
      event: 'transfer.success' as const,
      data: { id: transfer, externalId: 'p-1', status: 'SUCCESS' as const, amount: '5', currency: 'XAF' },
    })),
  );
  const receiver = transferCallbackReceiver({ store: memoryStore(), schema: made, onSuccess, onFailed: onSuccess });
  expect(await receiver.receive({ kind: 'paid', transfer: 'tr-1' })).toMatchObject({
    outcome: 'processed',
    id: 'tr-1',
  });
  expect(onSuccess.mock.calls).toMatchObject([[{ data: { id: 'tr-1', amount: '5' } }, {}]]);
});

test('a copy whose amount is written in another way is a duplicate, and confirm may read it so', async () => {
  const money = z.looseObject({ id: z.string(), amount: z.union([z.number(), z.string()]) });
  const made = money.transform((given) => ({
    event: 'transfer.success' as const,
    data: { ...given, externalId: 'p-1', status: 'SUCCESS' as const, currency: 'XAF' },
  }));
  const onSuccess = vi.fn();
  const handlers = { store: memoryStore(), schema: made, onSuccess, onFailed: onSuccess, logger: false } as const;
  const receiver = transferCallbackReceiver(handlers);
  const confirming = transferCallbackReceiver({
    ...handlers,
    confirm: (callback) => ({ ...callback, data: { ...callback.data, amount: '100.00' } }),
  });
  expect(await receiver.receive({ id: 'a', amount: 100 })).toMatchObject({ outcome: 'processed' });
  for (const amount of ['100', '100.00']) {
    expect(await receiver.receive({ id: 'a', amount })).toMatchObject({ outcome: 'duplicate' });
  }
  expect(await receiver.receive({ id: 'a', amount: '100.01' })).toMatchObject({ outcome: 'conflict' });
  expect(await confirming.receive({ id: 'b', amount: 100 })).toMatchObject({ outcome: 'processed' });
  expect(onSuccess.mock.lastCall?.[0]).toMatchObject({ data: { id: 'b', amount: '100.00' } });
  expect(await receiver.receive({ id: 'c', amount: '9007199254740993' })).toMatchObject({ outcome: 'processed' });
  expect(await receiver.receive({ id: 'c', amount: '9007199254740992' })).toMatchObject({ outcome: 'conflict' });
  expect(onSuccess).toHaveBeenCalledTimes(3);
});

test('a custom schema may leave out amount and currency, and a copy that has one is a conflict', async () => {
  const short = z.object({ id: z.string(), amount: z.number().optional() }).transform((given) => ({
    event: 'transfer.failed' as const,
    data: { ...given, externalId: 'p-1', status: 'FAILED' as const },
  }));
  const onFailed = vi.fn();
  const receiver = transferCallbackReceiver({ store: memoryStore(), schema: short, onSuccess: vi.fn(), onFailed });
  expect(await receiver.receive({ id: 't-7' })).toMatchObject({ outcome: 'processed' });
  expect(await receiver.receive({ id: 't-7' })).toMatchObject({ outcome: 'duplicate' });
  expect(onFailed.mock.calls).toMatchObject([[{ data: { id: 't-7' } }, {}]]);
  // Where one of two has an amount, they differ.
  expect(await receiver.receive({ id: 't-7', amount: 5 })).toEqual(
    expect.objectContaining({
      outcome: 'conflict',
      settled: { status: 'FAILED', externalId: 'p-1' },
      received: { status: 'FAILED', amount: 5, externalId: 'p-1' },
    }),
  );
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
  /** Resolves with what the error tells of a schema that produces these fields in place of the documented ones. */
  async function tell(fields: object, event: unknown = 'transfer.success'): Promise<string> {
    const { data } = transferSucceeded();
    const produced = { event, data: { ...data, ...fields } };
    const outcome = await receiverOf({ schema: z.any().transform(() => produced) as never }).receive({});
    return outcome.outcome === 'invalid' ? (outcome.error as Error).message : outcome.outcome;
  }

  const one = (expected: string, path: string, got: string): string =>
    `Expected \`schema\` to produce ${expected} for \`${path}\`, got ${got}.`;
  const statuses = "'SUCCESS' or 'FAILED' or 'REVERSED'";

  test.each<[object, string]>([
    [{ id: 5 }, `${one('a text', 'data.id', 'a number')} Write \`String(id)\`.`],
    [{ externalId: 5n }, `${one('a text', 'data.externalId', 'a bigint')} Write \`String(externalId)\`.`],
    [
      { amount: 15_000n },
      `${one('a number, a text or undefined', 'data.amount', 'a bigint')} Write \`String(amount)\`.`,
    ],
    [{ externalId: undefined }, one('a text', 'data.externalId', 'undefined')],
    [
      { currency: null },
      `${one('a text or undefined', 'data.currency', 'null')} Write \`currency: currency ?? undefined\`.`,
    ],
    [{ currency: ['XAF'] }, one('a text or undefined', 'data.currency', 'an array')],
    [{ amount: { value: 5 } }, one('a number, a text or undefined', 'data.amount', 'an object')],
    [{ id: true }, one('a text', 'data.id', 'a boolean')],
    [{ status: 'success' }, one(statuses, 'data.status', 'another text')],
    [{ status: 1 }, one(statuses, 'data.status', 'a number')],
  ])('is told which: %o', async (fields, told) => {
    expect(await tell(fields)).toBe(told);
  });

  test('every wrong field is named, and no right one', async () => {
    expect(await tell({ id: 5, amount: null, status: 'OK' }, 'paid')).toBe(
      [
        one("'transfer.success' or 'transfer.failed' or 'transfer.reversed' or 'other'", 'event', 'another text'),
        `${one('a text', 'data.id', 'a number')} Write \`String(id)\`.`,
        one(statuses, 'data.status', 'another text'),
        `${one('a number, a text or undefined', 'data.amount', 'null')} Write \`amount: amount ?? undefined\`.`,
      ].join(' '),
    );
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
  expect(await receiver.receive({})).toMatchObject({ outcome: 'processed', id: data.id, status: 'SUCCESS' });
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
