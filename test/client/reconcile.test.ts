import { describe, expect, test, vi } from 'vitest';
import { reconcileTransfers, type ReconcileOptions } from 'transfer-callbacks/client';
import type { TransferCallback, TransferCallbackReceiver } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { emptyReport, old, oneOf, startKnowing } from './support.js';

describe('reconcileTransfers', () => {
  test('hands final transfers to the handlers, with its source, and leaves the others', async () => {
    const [success, failure] = [transferSucceeded(), transferFailed()];
    const open = { ...transferSucceeded().data, status: 'PENDING' };
    const { client } = await startKnowing({ ...success.data }, { ...failure.data }, open);
    const seen: unknown[] = [];
    const receiver = receiverOf({
      onSuccess: (callback, { source }) => seen.push([callback, source]),
      onFailed: (callback, { source }) => seen.push([callback, source]),
    });
    expect(
      await reconcileTransfers({
        client,
        receiver,
        pending: [...oneOf(success, failure), old(open.externalId), old('unheard-of')],
        concurrency: 1,
      }),
    ).toMatchObject({
      ...emptyReport,
      processed: 2,
      pending: 1,
      unknown: 1,
      problems: [{ id: 'unheard-of', result: 'unknown', error: expect.objectContaining({ status: 404 }) as unknown }],
    });
    expect(seen).toEqual([
      [success, 'reconciliation'],
      [failure, 'reconciliation'],
    ]);
  });

  test('finds a transfer by the id of the service, too', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
    const pending = [old(success.data.id)];
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending })).toMatchObject({
      ...emptyReport,
      processed: 1,
    });
  });

  test('a transfer whose callback has come is a duplicate, and its handler does not run again', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ onSuccess });
    await receiver.receive(success);
    expect(await reconcileTransfers({ client, receiver, pending: oneOf(success) })).toMatchObject({
      ...emptyReport,
      duplicate: 1,
    });
    expect(onSuccess).toHaveBeenCalledOnce();
  });

  test('a callback that comes at the same moment waits, and the handler runs once', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
    const [started, goOn] = [later(), later()];
    const onSuccess = vi.fn(async () => {
      started.resolve();
      await goOn.promise;
    });
    const receiver = receiverOf({ onSuccess });
    const pass = reconcileTransfers({ client, receiver, pending: oneOf(success) });
    await started.promise;
    const callback = receiver.receive(success);
    goOn.resolve();
    expect(await pass).toMatchObject({ ...emptyReport, processed: 1 });
    expect((await callback).outcome).toBe('duplicate');
    expect(onSuccess).toHaveBeenCalledOnce();
  });

  test('leaves transfers that are younger than minAgeMs to their callbacks, without asking', async () => {
    const { client, received } = await startKnowing();
    const pending = [
      { id: 'a', createdAt: Date.now() - 590_000 },
      { id: 'b', createdAt: new Date() },
    ];
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending })).toMatchObject({
      ...emptyReport,
      pending: 2,
    });
    expect(received).toEqual([]);
    await reconcileTransfers({ client, receiver: receiverOf(), pending, minAgeMs: 0 });
    expect(received).toHaveLength(2);
  });

  const client = { getTransaction: () => Promise.reject(new Error('not asked')) };
  const receiver: TransferCallbackReceiver = receiverOf();
  test.each<[object, string]>([
    [{ client: {} }, 'Expected `client` to be made by transferClient(), got an object.'],
    [{ receiver: undefined }, 'Expected `receiver` to be made by transferCallbackReceiver(), got undefined.'],
    [{ pending: 5 }, 'Expected `pending` to be an iterable or an async iterable, got 5.'],
    [{ pending: null }, 'Expected `pending` to be an iterable or an async iterable, got null.'],
    [{ pending: {} }, 'Expected `pending` to be an iterable or an async iterable, got an object.'],
    [{ concurrency: 0 }, 'Expected `concurrency` to be a whole number from 1 to 10000, got 0.'],
    [{ concurrency: 10_001 }, 'Expected `concurrency` to be a whole number from 1 to 10000, got 10001.'],
    [{ minAgeMs: -1 }, 'Expected `minAgeMs` to be a whole number from 0 to 9007199254740991, got -1.'],
    [
      { minAge: 1 },
      'Unknown option `minAge`; known are client, concurrency, queriesPerSecond, limit, signal, receiver, pending, minAgeMs, onProgress.',
    ],
  ])('refuses the options %j', async (changes, message) => {
    const options = { client, receiver, pending: [], ...changes } as ReconcileOptions<TransferCallback, undefined>;
    await expect(reconcileTransfers(options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });
});
