import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import * as mini from 'zod/v4-mini';
import type { StandardSchema, TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
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

test('an id may have 255 characters of any length', async () => {
  for (const id of ['😀'.repeat(255), 'é'.repeat(255)]) {
    expect(await receiverOf().receive(transferSucceeded({ id }))).toMatchObject({ outcome: 'processed', id });
  }
  expect(await receiverOf().receive(transferSucceeded({ id: '😀'.repeat(256) }))).toMatchObject({ outcome: 'invalid' });
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
    // A handler that copies the object key by key would set its prototype.
    expect(Object.hasOwn(data.bankAccount ?? {}, '__proto__')).toBe(false);
  });
});
