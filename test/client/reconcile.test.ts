import { describe, expect, test, vi } from 'vitest';
import {
  reconcileTransfers,
  type PendingTransfer,
  type ReconcileOptions,
  type Transaction,
} from 'transfer-callbacks/client';
import { RetryLater, type TransferCallback, type TransferCallbackReceiver } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { refusal, startService, type Reply, type Service } from './support.js';

const hourMs = 3_600_000;
const old = (id: string): PendingTransfer => ({ id, createdAt: new Date(Date.now() - hourMs) });
const oneOf = (...callbacks: TransferCallback[]): PendingTransfer[] =>
  callbacks.map(({ data }) => old(data.externalId));

/** A service that knows these transactions by either id, and responds with 404 to the others. */
async function start(...known: (Transaction | Reply)[]): Promise<Service> {
  const service = await startService(({ url = '' }) => {
    const id = decodeURIComponent(url.slice('/transactions/'.length));
    const found = known.find(
      (entry): entry is Transaction => 'id' in entry && [entry.id, entry.externalId].includes(id),
    );
    return found === undefined ? refusal(404, 'Unknown') : [200, { data: found }];
  });
  return service;
}

const report = { processed: 0, duplicate: 0, pending: 0, unknown: 0, failed: 0, problems: [], stopped: undefined };

describe('reconcileTransfers', () => {
  test('hands final transfers to the handlers, with its source, and leaves the others', async () => {
    const [success, failure] = [transferSucceeded(), transferFailed()];
    const open = { ...transferSucceeded().data, status: 'PENDING' };
    const { client } = await start({ ...success.data }, { ...failure.data }, open);
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
      ...report,
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
    const { client } = await start({ ...success.data });
    const pending = [old(success.data.id)];
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending })).toMatchObject({
      ...report,
      processed: 1,
    });
  });

  test('a transfer whose callback has come is a duplicate, and its handler does not run again', async () => {
    const success = transferSucceeded();
    const { client } = await start({ ...success.data });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ onSuccess });
    await receiver.receive(success);
    expect(await reconcileTransfers({ client, receiver, pending: oneOf(success) })).toMatchObject({
      ...report,
      duplicate: 1,
    });
    expect(onSuccess).toHaveBeenCalledOnce();
  });

  test('a callback that comes at the same moment waits, and the handler runs once', async () => {
    const success = transferSucceeded();
    const { client } = await start({ ...success.data });
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
    expect(await pass).toMatchObject({ ...report, processed: 1 });
    expect((await callback).outcome).toBe('duplicate');
    expect(onSuccess).toHaveBeenCalledOnce();
  });

  test('leaves transfers that are younger than minAgeMs to their callbacks, without asking', async () => {
    const { client, received } = await start();
    const pending = [
      { id: 'a', createdAt: Date.now() - 590_000 },
      { id: 'b', createdAt: new Date() },
    ];
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending })).toMatchObject({
      ...report,
      pending: 2,
    });
    expect(received).toEqual([]);
    await reconcileTransfers({ client, receiver: receiverOf(), pending, minAgeMs: 0 });
    expect(received).toHaveLength(2);
  });

  const invalidArgument = 'INVALID_ARGUMENT';
  test.each<[string, unknown, string]>([
    ['its id climbs out of the path', old('../keys'), 'INVALID_ID'],
    ['its id is a number', { ...old('5'), id: 5 }, 'INVALID_ID'],
    ['its age is not known', { id: 'a', createdAt: new Date('soon') }, invalidArgument],
    ['it is no transfer', null, invalidArgument],
    ['it is undefined', undefined, invalidArgument],
    ['it was created in the future', { id: 'a', createdAt: Date.now() + 2 * 86_400_000 }, invalidArgument],
    ['it was created in microseconds', { id: 'a', createdAt: Date.now() * 1_000 }, invalidArgument],
    ['it was created at no time', { id: 'a', createdAt: null }, invalidArgument],
  ])('one that is bad, because %s, fails alone', async (_title, bad, code) => {
    const success = transferSucceeded();
    const { client } = await start({ ...success.data });
    const pending = [bad as PendingTransfer, ...oneOf(success)];
    const done = await reconcileTransfers({ client, receiver: receiverOf(), pending });
    expect(done).toMatchObject({ processed: 1, failed: 1, problems: [{ result: 'failed', error: { code } }] });
  });

  test.each<[string, Partial<Parameters<typeof receiverOf>[0]>, object]>([
    [
      'throws',
      { onSuccess: () => Promise.reject(new Error('down')) },
      { outcome: 'handler_failed', error: { code: 'NOT_HANDLED', cause: new Error('down') } },
    ],
    ['asks for later', { onSuccess: () => Promise.reject(new RetryLater()) }, { outcome: 'retry_later' }],
  ])('a handler that %s is a failure of the pass, not of the transfer', async (_title, options, expected) => {
    const success = transferSucceeded();
    const { client } = await start({ ...success.data });
    const onFailed = vi.fn();
    const done = await reconcileTransfers({
      client,
      receiver: receiverOf({ ...options, onFailed }),
      pending: oneOf(success),
    });
    expect(done).toMatchObject({ failed: 1, problems: [{ result: 'failed', ...expected }] });
    expect(onFailed).not.toHaveBeenCalled();
  });

  test('a contradiction with what was settled is a failure that shows both sides', async () => {
    const success = transferSucceeded();
    const { client } = await start({ ...success.data });
    const receiver = receiverOf();
    await receiver.receive(transferFailed({ id: success.data.id, externalId: success.data.externalId }));
    expect(await reconcileTransfers({ client, receiver, pending: oneOf(success) })).toMatchObject({
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
          settled: expect.anything() as never,
          received: { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: success.data.externalId },
        },
      ],
    });
  });

  test('another transfer than the one that was asked for is refused', async () => {
    const service = await startService([[200, transferSucceeded().data]]);
    const onSuccess = vi.fn();
    const done = await reconcileTransfers({
      client: service.client,
      receiver: receiverOf({ onSuccess }),
      pending: [old('payout-1')],
    });
    expect(done).toMatchObject({
      failed: 1,
      problems: [
        { error: expect.objectContaining({ message: 'The service responded with another transfer.' }) as unknown },
      ],
    });
    expect(onSuccess).not.toHaveBeenCalled();
  });

  test('takes transfers from a stream as it needs them, `concurrency` at a time', async () => {
    let taken = 0;
    let running = 0;
    let most = 0;
    let ahead = 0;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      for (let index = 0; index < 50; index += 1) {
        taken += 1;
        ahead = Math.max(ahead, taken - done);
        yield Promise.resolve(old(`payout-${index}`));
      }
    }
    let done = 0;
    const counted = await reconcileTransfers({
      client: {
        async getTransaction(id) {
          running += 1;
          most = Math.max(most, running);
          await new Promise(setImmediate);
          running -= 1;
          return { ...transferSucceeded().data, externalId: id };
        },
      },
      receiver: receiverOf(),
      pending: cursor(),
      concurrency: 3,
      onProgress: () => {
        done += 1;
      },
    });
    expect(counted.processed).toBe(50);
    expect(most).toBe(3);
    expect(ahead).toBeLessThanOrEqual(4);
  });

  test('reports every transfer to onProgress, and keeps no more than 100 problems', async () => {
    const { client } = await start();
    const told: string[] = [];
    const counted = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: Array.from({ length: 130 }, (_, index) => old(`payout-${index}`)),
      concurrency: 8,
      onProgress: ({ id, result }, { unknown }) => told.push(`${id} ${result} ${unknown}`),
    });
    expect(counted).toMatchObject({ unknown: 130, problems: { length: 100 } });
    expect(new Set(told).size).toBe(130);
    expect(told.at(-1)).toMatch(/ unknown 130$/);
  });

  test('a signal ends the pass: none is taken any more, and the stream is closed', async () => {
    const { client } = await start();
    const controller = new AbortController();
    let closed = false;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      try {
        for (let index = 0; ; index += 1) yield Promise.resolve(old(`payout-${index}`));
      } finally {
        closed = true;
      }
    }
    const counted = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: cursor(),
      signal: controller.signal,
      onProgress: (_reconciled, { unknown }) => {
        if (unknown === 5) controller.abort();
      },
    });
    expect(counted.stopped).toBe('aborted');
    expect(counted.unknown).toBeGreaterThanOrEqual(5);
    expect(counted).toMatchObject({ failed: 0 });
    expect(counted.unknown + counted.pending).toBeLessThanOrEqual(10);
    expect(closed).toBe(true);
  });

  test('a signal ends the reading of a service that does not respond, and what was not read is pending', async () => {
    const service = await startService([() => undefined]);
    const controller = new AbortController();
    const pass = reconcileTransfers({
      client: service.client,
      receiver: receiverOf(),
      pending: [old('payout-1'), old('payout-2')],
      signal: controller.signal,
    });
    await vi.waitFor(() => {
      expect(service.received).toHaveLength(2);
    });
    controller.abort();
    expect(await pass).toMatchObject({ ...report, pending: 2, stopped: 'aborted', cursor: undefined });
  });

  test('a signal, or what onProgress throws, ends a pass whose stream does not go on', async () => {
    const { client } = await start();
    const controller = new AbortController();
    const goOn = later();
    let closed = 0;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      try {
        yield old('payout-1');
        await goOn.promise;
      } finally {
        closed += 1;
      }
    }
    const options = { client, receiver: receiverOf(), signal: controller.signal };
    const thrown = reconcileTransfers({
      ...options,
      pending: cursor(),
      onProgress: () => {
        throw new Error('enough');
      },
    });
    await expect(thrown).rejects.toThrow('enough');
    const aborted = reconcileTransfers({ ...options, pending: cursor(), onProgress: () => setImmediate(() => { controller.abort(); }) }); // prettier-ignore
    expect(await aborted).toMatchObject({ unknown: 1, pending: 0, stopped: 'aborted' });
    goOn.resolve();
    await vi.waitFor(() => {
      expect(closed).toBe(2);
    });
  });

  test('a signal that has aborted takes nothing', async () => {
    const { client } = await start();
    const taken = vi.fn(function* () {
      yield old('payout-1');
    });
    const pending = { [Symbol.iterator]: taken };
    const next = vi.fn(() => ({ done: false as const, value: old('payout-1') }));
    const signal = AbortSignal.abort();
    const ended = { ...report, stopped: 'aborted', queries: 0, cursor: undefined };
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending, signal })).toMatchObject(ended);
    const bare = { [Symbol.iterator]: () => ({ next }) };
    expect(await reconcileTransfers({ client, receiver: receiverOf(), pending: bare, signal })).toMatchObject(ended);
    expect(next).not.toHaveBeenCalled();
  });

  test('a stream that breaks rejects, once those under way have ended', async () => {
    const success = transferSucceeded();
    const { client } = await start({ ...success.data });
    const onSuccess = vi.fn();
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      yield* oneOf(success);
      await Promise.reject(new Error('the cursor is gone'));
    }
    const pass = reconcileTransfers({ client, receiver: receiverOf({ onSuccess }), pending: cursor() });
    await expect(pass).rejects.toThrow('the cursor is gone');
    expect(onSuccess).toHaveBeenCalledOnce();
  });

  test('what onProgress throws ends the pass', async () => {
    const { client, received } = await start();
    const pass = reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: Array.from({ length: 50 }, (_, index) => old(`payout-${index}`)),
      concurrency: 1,
      onProgress: () => {
        throw new Error('no');
      },
    });
    await expect(pass).rejects.toThrow('no');
    expect(received.length).toBeLessThan(5);
  });

  const client = { getTransaction: () => Promise.reject(new Error('not asked')) };
  const receiver: TransferCallbackReceiver = receiverOf();
  test.each<[object, string]>([
    [{ client: {} }, 'Expected `client` to be made by transferClient(), got an object.'],
    [{ receiver: undefined }, 'Expected `receiver` to be made by transferCallbackReceiver(), got undefined.'],
    [{ pending: 5 }, 'Expected `pending` to be an iterable or an async iterable, got 5.'],
    [{ pending: null }, 'Expected `pending` to be an iterable or an async iterable, got null.'],
    [{ pending: {} }, 'Expected `pending` to be an iterable or an async iterable, got an object.'],
    [{ concurrency: 0 }, 'Expected `concurrency` to be a whole number from 1 to 2147483647, got 0.'],
    [{ minAgeMs: -1 }, 'Expected `minAgeMs` to be a whole number from 0 to 9007199254740991, got -1.'],
    [
      { minAge: 1 },
      'Unknown option `minAge`; known are client, concurrency, queriesPerSecond, limit, deadlineMs, signal, receiver, pending, minAgeMs, onProgress.',
    ],
  ])('refuses the options %j', async (changes, message) => {
    const options = { client, receiver, pending: [], ...changes } as ReconcileOptions<TransferCallback, undefined>;
    await expect(reconcileTransfers(options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });
});
