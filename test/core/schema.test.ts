import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import * as mini from 'zod/v4-mini';
import { memoryStore, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
import { recordingLogger } from '../support/logger.js';
import { receiverOf } from './support.js';

/** A schema of an author who wants everything loose. */
const schema = z.looseObject({
  event: z.enum(['transfer.success', 'transfer.failed']),
  data: z.looseObject({
    id: z.string(),
    externalId: z.string(),
    status: z.enum(['SUCCESS', 'FAILED']),
    amount: z.number(),
    currency: z.string(),
  }),
}) as unknown as StandardSchema<TransferCallback>;

describe('a loose schema of one’s own', () => {
  test('a loose custom schema gives the handler what it has produced', async () => {
    const onSuccess = vi.fn();
    const { data } = transferSucceeded();
    const callback = { event: 'transfer.success', data: { ...data, vouchercode: null, fee: 5 } };
    expect(await receiverOf({ schema, onSuccess }).receive(callback)).toMatchObject({ outcome: 'processed' });
    expect(onSuccess.mock.calls[0]?.[0]).toEqual(callback);
  });

  test('a loose custom schema lets a failure through', async () => {
    const onFailed = vi.fn();
    const callback = transferFailed();
    expect(await receiverOf({ schema, onFailed }).receive(callback)).toMatchObject({ outcome: 'processed' });
    expect(onFailed.mock.calls[0]?.[0]).toEqual(callback);
  });

  test.each([
    ['a failure that contradicts the status', { ...transferSucceeded(), event: 'transfer.failed' }, 'status'],
    ['an event that contradicts the status', { ...transferFailed(), event: 'transfer.success' }, 'status'],
    ['an empty id', transferSucceeded({ id: '' }), 'id'],
    ['an id of 256 characters', transferSucceeded({ id: 'x'.repeat(256) }), 'id'],
    ['an id with half a character', transferSucceeded({ id: 'a\ud800' }), 'id'],
    ['an amount beyond 2^53', transferSucceeded({ amount: 2 ** 53 }), 'amount'],
  ])('a loose custom schema does not let %s through', async (_name, callback, field) => {
    const handler = vi.fn();
    const receiver = receiverOf({ schema, onSuccess: handler, onFailed: handler });
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'invalid',
      issues: [{ path: ['data', field] }],
    });
    expect(handler).not.toHaveBeenCalled();
  });
});

test('a schema of zod/mini works', async () => {
  const paid = mini.pipe(
    mini.looseObject({ kind: mini.literal('paid'), transfer: mini.string() }),
    mini.transform(({ transfer }) => transferSucceeded({ id: transfer }) as TransferCallback),
  );
  expect(await receiverOf({ schema: paid }).receive({ kind: 'paid', transfer: 'tr-1' })).toMatchObject({
    outcome: 'processed',
    id: 'tr-1',
  });
});

test('a schema that produces no callback is a fault of this app, and is logged as one', async () => {
  const logger = recordingLogger();
  const empty = z.object({}) as unknown as StandardSchema<TransferCallback>;
  expect(await receiverOf({ schema: empty, logger }).receive(transferSucceeded())).toMatchObject({
    outcome: 'invalid',
    error: { code: 'INVALID_ARGUMENT' },
  });
  expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('at fault') as string }]);
});

describe('a schema that makes a wrong field', () => {
  const secretNumber = '237699999999';
  /** Resolves with what the error tells of a schema that produces these fields in place of the documented ones. */
  async function tell(fields: object, event: unknown = 'transfer.success'): Promise<string> {
    const { data } = transferSucceeded();
    const produced = { event, data: { ...data, ...fields } };
    const outcome = await receiverOf({ schema: z.any().transform(() => produced) as never }).receive({});
    return outcome.outcome === 'invalid' ? (outcome.error as Error).message : outcome.outcome;
  }

  const one = (expected: string, path: string, got: string): string =>
    `Expected \`schema\` to produce ${expected} for \`${path}\`, got ${got}.`;
  const statuses = "'SUCCESS' or 'FAILED'";

  test.each<[object, string]>([
    [{ id: 5 }, `${one('a text', 'data.id', 'a number')} Write \`String(id)\`.`],
    [{ externalId: 5n }, `${one('a text', 'data.externalId', 'a bigint')} Write \`String(externalId)\`.`],
    [{ amount: 15_000n }, `${one('a number or a text', 'data.amount', 'a bigint')} Write \`String(amount)\`.`],
    [{ externalId: undefined }, one('a text', 'data.externalId', 'undefined')],
    [{ currency: null }, one('a text', 'data.currency', 'null')],
    [{ currency: ['XAF'] }, one('a text', 'data.currency', 'an array')],
    [{ amount: { value: 5 } }, one('a number or a text', 'data.amount', 'an object')],
    [{ id: true }, one('a text', 'data.id', 'a boolean')],
    [{ status: 'success' }, one(statuses, 'data.status', 'another text')],
    [{ status: 1 }, one(statuses, 'data.status', 'a number')],
  ])('is told which: %o', async (fields, told) => {
    expect(await tell(fields)).toBe(told);
  });

  test('every wrong field is named, and no right one', async () => {
    expect(await tell({ id: 5, amount: null, status: 'OK' }, 'paid')).toBe(
      [
        one("'transfer.success' or 'transfer.failed'", 'event', 'another text'),
        `${one('a text', 'data.id', 'a number')} Write \`String(id)\`.`,
        one(statuses, 'data.status', 'another text'),
        one('a number or a text', 'data.amount', 'null'),
      ].join(' '),
    );
  });

  test('no wrong field is told by its value', async () => {
    const wrong = { id: Number(secretNumber), status: secretNumber, currency: [secretNumber] };
    expect(await tell(wrong, secretNumber)).not.toContain(secretNumber);
  });
});

test('an amount that is not finite is refused, because all such amounts would be one fact', async () => {
  const onSuccess = vi.fn();
  const loose = z.any() as unknown as StandardSchema<TransferCallback>;
  const receiver = receiverOf({ schema: loose, onSuccess });
  const { event, data } = transferSucceeded();
  for (const amount of [1e309, -1e309, NaN]) {
    expect(await receiver.receive({ event, data: { ...data, amount } })).toMatchObject({
      outcome: 'invalid',
      issues: [{ path: ['data', 'amount'], message: expect.stringContaining('a finite number') as string }],
    });
  }
  expect(onSuccess).not.toHaveBeenCalled();
});

describe('a schema whose value changes or throws when it is read again', () => {
  /** Produces a callback each field of which can be read this often. */
  function readable(times: number, later: () => unknown) {
    const { event, data } = transferSucceeded();
    const reads = new Map<PropertyKey, number>();
    const counted = new Proxy(data, {
      get(target, name): unknown {
        const count = (reads.get(name) ?? 0) + 1;
        reads.set(name, count);
        return count > times ? later() : Reflect.get(target, name);
      },
    });
    return { data, schema: z.any().transform(() => ({ event, data: counted })) as never };
  }
  const fail = (): never => {
    throw new Error('read again');
  };

  test('each field is read once, so that a value that throws later is handled', async () => {
    const { data, schema } = readable(1, fail);
    const receiver = receiverOf({ schema });
    expect(await receiver.receive({})).toMatchObject({ outcome: 'processed', id: data.id, status: 'SUCCESS' });
    expect(await receiver.close({ timeoutMs: 5_000 })).toEqual({ unfinished: 0, ids: [] });
  });

  test('each field is read once, so that the facts are those that were checked', async () => {
    const { data, schema } = readable(1, () => 'changed');
    const store = memoryStore();
    expect(await receiverOf({ schema, store }).receive({})).toMatchObject({ outcome: 'processed', id: data.id });
    const facts = JSON.stringify(['SUCCESS', data.amount, data.currency, data.externalId]);
    expect(await store.read(data.id)).toMatchObject({ state: 'settled', fingerprint: facts });
  });

  test('a value that throws when it is first read is invalid', async () => {
    const { schema } = readable(0, fail);
    const receiver = receiverOf({ schema });
    expect(await receiver.receive({})).toMatchObject({ outcome: 'invalid', error: { message: 'read again' } });
    expect(await receiver.close({ timeoutMs: 5_000 })).toEqual({ unfinished: 0, ids: [] });
  });
});

describe('a key `__proto__` of a callback that was parsed elsewhere', () => {
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
});
