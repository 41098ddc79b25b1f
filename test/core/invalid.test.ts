import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { memoryStore, transferCallbackReceiver, transferCallbackSchema } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { UnreadableCallback } from '../../src/core/callback.js';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, receiverOf } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('a delivery', () => {
  test('an invalid callback is reported with places and reasons, and without values', async () => {
    const receiver = receiverOf();
    const callback = transferSucceeded();
    const outcome = await receiver.receive({ ...callback, data: { ...callback.data, walletNumber: 237670000000 } });
    expect(outcome).toStrictEqual({
      outcome: 'invalid',
      issues: [{ path: ['data', 'walletNumber'], message: 'Invalid input: expected string, received number' }],
      id: callback.data.id,
      externalId: callback.data.externalId,
      verified: false,
      source: 'direct',
      durationMs: 0,
      delivery: expect.any(String) as string,
    });
  });

  const other = z.object({ event: z.literal('paid') }) as never;
  test.each<[string, unknown, object]>([
    ['in data, as a number', { data: { id: 7, reference: 'p-1' } }, { id: '7', externalId: 'p-1' }],
    ['beside data', { id: 't-7', externalId: 'p-1', data: 5 }, { id: 't-7', externalId: 'p-1' }],
    ['in a body without data', { reference: 'p-1' }, { externalId: 'p-1' }],
    [
      'in both places',
      { id: 'e-1', data: { id: 't-7', externalId: 'p-1', reference: 'r' } },
      { id: 't-7', externalId: 'p-1' },
    ],
    [
      'as a text that a line could not show',
      { data: { id: 't\u202e', reference: 'p\u202e' } },
      { externalId: 'p\\u{202e}' },
    ],
    ['as a number that is not exact', { id: 2 ** 53 }, {}],
    ['nowhere', 'paid', {}],
  ])('the log names an invalid callback of another service whose ids are %s', async (_where, callback, ids) => {
    const logger = recordingLogger();
    await receiverOf({ schema: other, logger }).receive(callback);
    const { id, externalId } = logger.lines[0]?.details as { id?: string; externalId?: string };
    expect({ id, externalId }).toEqual(ids);
  });

  test('the reference of the documented callback is not taken for an externalId', async () => {
    const { event, data } = transferSucceeded();
    const outcome = await receiverOf().receive({ event, data: { ...data, externalId: undefined } });
    expect([outcome.id, outcome.externalId]).toEqual([data.id, undefined]);
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

  test('a callback that could not be read is invalid, and its issue gives the reason', async () => {
    expect(await receiverOf().receive(new UnreadableCallback('The body is not JSON.'))).toMatchObject({
      outcome: 'invalid',
      issues: [{ path: [], message: 'The body is not JSON.' }],
    });
  });

  test('a custom schema validates the callback, and the handler gets its result', async () => {
    const onSuccess = vi.fn();
    const renamed = z.object({ type: z.literal('paid'), transfer: z.string() }).transform(({ transfer }) => ({
      event: 'transfer.success' as const,
      data: { id: transfer, externalId: transfer, status: 'SUCCESS' as const, amount: '5', currency: 'XAF' },
    }));
    const receiver = transferCallbackReceiver({
      store: memoryStore(),
      schema: renamed,
      onSuccess,
      onFailed: () => undefined,
    });
    expect(await receiver.receive({ type: 'paid', transfer: 't1' })).toMatchObject({ outcome: 'processed', id: 't1' });
    expect(onSuccess.mock.calls[0]).toMatchObject([{ data: { id: 't1', amount: '5' } }, {}]);
  });

  const event = 'transfer.success';
  test.each<[string, (data: object) => unknown]>([
    ['nothing', () => undefined],
    ['no data', () => ({ event })],
    ['null for data', () => ({ event, data: null })],
  ])(
    'a callback is invalid when a custom schema returns %s, and the error is INVALID_ARGUMENT',
    async (_title, give) => {
      const callback = transferSucceeded();
      const onSuccess = vi.fn();
      const receiver = receiverOf({ schema: z.any().transform(() => give(callback.data)) as never, onSuccess });
      expect(await receiver.receive(callback)).toMatchObject({
        outcome: 'invalid',
        error: expect.objectContaining({ code: 'INVALID_ARGUMENT' }) as unknown,
      });
      expect(onSuccess).not.toHaveBeenCalled();
    },
  );

  test('a callback is invalid when the schema throws', async () => {
    const error = new Error('broken schema');
    const schema = transferCallbackSchema.refine(() => {
      throw error;
    });
    expect(await receiverOf({ schema }).receive(transferSucceeded())).toMatchObject({
      outcome: 'invalid',
      error,
      issues: [{ path: [], message: 'The schema failed' }],
    });
  });

  test('a callback is invalid when reading it throws, and the receiver can be closed', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const receiver = receiverOf();
    expect(await receiver.receive(proxy)).toMatchObject({ outcome: 'invalid', error: expect.any(TypeError) as Error });
    expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
  });

  test('an issue inside a list has the number of its entry', async () => {
    const schema = z.object({ data: z.object({ fees: z.array(z.number()) }) }) as never;
    const { event, data } = transferSucceeded();
    expect(await receiverOf({ schema }).receive({ event, data: { ...data, fees: [5, 'x'] } })).toMatchObject({
      issues: [{ path: ['data', 'fees', 1] }],
    });
  });

  test('an invalid callback of a verified sender keeps its ids, and is an error in the log', async () => {
    const logger = { warn: vi.fn(), error: vi.fn() };
    const receiver = receiverOf({ logger });
    const { data } = transferSucceeded();
    const drifted = { event: 'transfer.success', data: { ...data, vouchercode: null } };
    expect(await receiver.receive(drifted, { verify: () => true })).toMatchObject({
      outcome: 'invalid',
      verified: true,
      id: data.id,
      externalId: data.externalId,
      issues: [{ path: ['data', 'vouchercode'] }],
    });
    expect(logger.error).toHaveBeenCalledTimes(1);
    expect(await receiver.receive(drifted)).toMatchObject({ outcome: 'invalid', verified: false });
    expect(logger.warn).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['an id with a line break', { id: 'a\nb', externalId: 'payout-1' }, { externalId: 'payout-1' }],
    ['ids that are neither text nor number', { id: true, externalId: {} }, {}],
    ['an externalId that is a list', { id: 'a', externalId: ['b'] }, { id: 'a' }],
    [
      'an externalId of 1 000 characters',
      { id: 'a', externalId: 'x'.repeat(1_000) },
      { id: 'a', externalId: 'x'.repeat(255) },
    ],
  ])('an invalid callback with %s keeps what is safe to print', async (_name, ids, kept) => {
    const outcome = await receiverOf().receive({ data: ids });
    expect(outcome).toMatchObject({ outcome: 'invalid', ...kept });
    expect(Object.keys(outcome).filter((name) => /^(id|externalId)$/.test(name))).toEqual(Object.keys(kept));
  });
});
