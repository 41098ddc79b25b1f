import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { TransferCallback, TransferCallbackReceiver } from 'transfer-callbacks';
import { reconcileTransfer, reconcileTransfers } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import type { ReconcileOptions } from '../../../src/client/reconcile/reconcile.js';
import { later, receiverOf } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { listen } from '../../support/helpers/listen.js';
import { emptyReport, old, oneOf, reconcile, startKnowing, serviceOf } from '../support.js';

describe('reconcileTransfers', () => {
  test('hands final transfers to the handlers, with its source, and leaves the others', async () => {
    const [success, failure] = [transferSucceeded(), transferFailed()];
    const open = { ...transferSucceeded().data, status: 'PENDING' };
    const { client } = await startKnowing({ ...success.data }, { ...failure.data }, open);
    const seen: unknown[] = [];
    const receiver = receiverOf({
      service: client,
      onSuccess: (callback, { source }) => seen.push([callback, source]),
      onFailed: (callback, { source }) => seen.push([callback, source]),
    });
    expect(
      await reconcileTransfers({
        receiver,
        pending: [...oneOf(success, failure), old(open.externalId), old('unheard-of')],
        concurrency: 1,
      }),
    ).toMatchObject({
      ...emptyReport,
      processed: 2,
      pending: 1,
      unknown: 1,
      advice: undefined,
      problems: [{ id: 'unheard-of', result: 'unknown', error: expect.objectContaining({ status: 404 }) as unknown }],
    });
    expect(seen).toEqual([
      [success, 'reconciliation'],
      [failure, 'reconciliation'],
    ]);
  });

  test('a callback that comes at the same moment waits, and the handler runs once', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
    const [started, goOn] = [later(), later()];
    const onSuccess = vi.fn(async () => {
      started.resolve();
      await goOn.promise;
    });
    const receiver = receiverOf({ service: client, onSuccess });
    const run = reconcileTransfers({ receiver, pending: oneOf(success) });
    await started.promise;
    const callback = receiver.receive(success);
    goOn.resolve();
    expect(await run).toMatchObject({ ...emptyReport, processed: 1 });
    expect((await callback).outcome).toBe('duplicate');
    expect(onSuccess).toHaveBeenCalledOnce();
  });

  test('leaves transfers that are younger than minAgeMs, to the millisecond, to their callbacks, without asking', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const now = Date.now();
    const told: string[] = [];
    const ages = { oldEnough: 600_000, young: 599_999, soon: -900_000, inADay: -86_400_000 };
    const { client, received } = await startKnowing();
    await reconcile(client, {
      pending: Object.entries(ages).map(([id, ageMs]) => ({ id, createdAt: now - ageMs })),
      concurrency: 1,
      onProgress: (each) => told.push('reason' in each ? `${each.id}: ${each.reason}` : `${each.id}: ${each.result}`),
    });
    expect(told).toEqual(['oldEnough: unknown', 'young: too_young', 'soon: too_young', 'inADay: failed']);
    const pending = [{ id: 'a', createdAt: now }];
    expect(await reconcile(client, { pending })).toMatchObject({ pending: 1, oldestOpenMs: 0 });
    expect(await reconcile(client, { pending, minAgeMs: 0 })).toMatchObject({ unknown: 1 });
    expect(received.map(({ url }) => url)).toEqual(['/transactions/oldEnough', '/transactions/a']);
  });

  const client = serviceOf({ getTransaction: () => Promise.reject(new Error('not asked')) });
  const receiver: TransferCallbackReceiver = receiverOf({ service: client });
  test('options that do not fit are refused, and the error names them', async () => {
    const cases: [changes: object, message: string][] = [
      [{ receiver: undefined }, 'Expected `receiver` to be a receiver, got undefined.'],
      [{ pending: undefined }, 'Expected `pending` to be an iterable or an async iterable, got undefined.'],
      [{ pending: 5 }, 'Expected `pending` to be an iterable or an async iterable, got 5.'],
      [{ pending: 5, paid: [] }, 'Expected `pending` to be an iterable or an async iterable, got 5.'],
      [{ pending: null }, 'Expected `pending` to be an iterable or an async iterable, got null.'],
      [{ pending: {} }, 'Expected `pending` to be an iterable or an async iterable, got an object.'],
      [{ pending: () => [] }, 'got a function. Write `pending: openPayouts()`.'],
      [{ pending: Promise.resolve([]) }, 'got a promise that was not awaited. Write `pending: await openPayouts()`.'],
      [
        { paid: [] },
        'Expected `paid` to be left out, because no state of the service of the receiver is REVERSED, got',
      ],
      [{ concurrency: 0 }, 'Expected `concurrency` to be a whole number from 1 to 10000, got 0.'],
      [{ concurrency: 10_001 }, 'Expected `concurrency` to be a whole number from 1 to 10000, got 10001.'],
      [{ limit: 0 }, 'Expected `limit` to be a whole number from 1 to 2147483647, got 0.'],
      [{ queriesPerSecond: 0.5 }, 'Expected `queriesPerSecond` to be a whole number from 1 to 2147483647, got 0.5.'],
      [{ onProgress: 'log' }, 'Expected `onProgress` to be a function, got "log".'],
      [{ minAgeMs: -1 }, 'Expected `minAgeMs` to be a whole number from 0 to 9007199254740991, got -1.'],
    ];
    for (const [changes, message] of cases) {
      const options = { receiver, pending: [], ...changes } as ReconcileOptions<TransferCallback, undefined>;
      await expect(reconcileTransfers(options), message).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: containing(message),
      });
    }
  });
});

test('a contradiction with what was handled is a failure that shows both sides', async () => {
  const success = transferSucceeded();
  const { client } = await startKnowing({ ...success.data });
  const receiver = receiverOf({ service: client });
  await receiver.receive(transferFailed({ id: success.data.id, externalId: success.data.externalId }));
  expect(await reconcileTransfers({ receiver, pending: oneOf(success) })).toMatchObject({
    failed: 1,
    problems: [
      {
        outcome: 'conflict',
        error: {
          code: 'NOT_HANDLED',
          message: expect.stringMatching(
            /^The receiver ended with conflict: handled before with .*FAILED.*, now .*SUCCESS/,
          ) as string,
        },
        recorded: expect.anything() as never,
        received: { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: success.data.externalId },
      },
    ],
  });
});

const open = { ...transferSucceeded({ id: 'tr-open', externalId: 'open' }).data, status: 'PENDING' };

describe('reconcileTransfer', () => {
  test('hands a final transfer to the handler once, and its callback is then a duplicate', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ service: client, onSuccess });
    const id = success.data.externalId;
    const published = vi.fn();
    listen('transfer-callbacks:reconciled', published);
    for (const result of ['processed', 'duplicate']) {
      expect(await reconcileTransfer({ receiver, id })).toEqual({ id, status: 'SUCCESS', result });
    }
    expect(await receiver.receive(success)).toMatchObject({ outcome: 'duplicate' });
    expect(onSuccess.mock.calls).toEqual([[success, expect.objectContaining({ source: 'reconciliation' })]]);
    // It knows of one transfer only: the metrics of the runs stay as they were.
    expect(published).not.toHaveBeenCalled();
  });

  test('tells why a transfer was not handled', async () => {
    const { client } = await startKnowing(open, { ...transferSucceeded({ id: 'tr-1' }).data });
    const receiver = receiverOf({ service: client, onSuccess: () => Promise.reject(new Error('no')) });
    const tell = (id: string, signal?: AbortSignal) => reconcileTransfer({ receiver, id, signal });
    expect(await tell('open')).toEqual({ id: 'open', status: 'PENDING', result: 'pending', reason: 'not_final' });
    expect(await tell('other')).toMatchObject({ result: 'unknown', error: { status: 404 } });
    expect(await tell('tr-1')).toMatchObject({ result: 'failed', outcome: 'handler_failed' });
    expect(await tell('tr-1', AbortSignal.abort())).toEqual({ id: 'tr-1', result: 'pending', reason: 'not_read' });
    await receiver.close();
    expect(await tell('tr-1')).toEqual({ id: 'tr-1', result: 'pending', reason: 'not_read' });
  });
});
