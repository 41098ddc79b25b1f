import { getEventListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { ReconciliationError, reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { emptyReport, final, old, startKnowing, startQueries, transfers, serviceOf, reconcile } from '../support.js';

describe('the signal of a run', () => {
  test('a signal that times out ends it: what is being read stays pending, and a handler that runs finishes', async () => {
    const { client } = await startQueries((id) => (id === 'tr-1' ? () => undefined : final(id)));
    const report = await reconcileTransfers({
      receiver: receiverOf({ service: client, onSuccess: () => pause(3_000) }),
      pending: transfers(20),
      concurrency: 2,
      signal: AbortSignal.timeout(2_500),
    });
    expect(report).toMatchObject({ stopped: 'aborted', processed: 1, pending: 1, cursor: { id: 'tr-0' } });
  });

  test('a signal, or what onProgress throws, ends a run whose stream does not go on', async () => {
    const { client } = await startKnowing();
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
    const { signal } = controller;
    const thrown = reconcile(client, {
      signal,
      pending: cursor(),
      onProgress: () => {
        throw new Error('enough');
      },
    });
    await expect(thrown).rejects.toThrow('enough');
    const aborted = reconcile(client, {
      signal,
      pending: cursor(),
      onProgress: () =>
        setImmediate(() => {
          controller.abort();
        }),
    });
    expect(await aborted).toMatchObject({ unknown: 1, pending: 0, stopped: 'aborted' });
    goOn.resolve();
    await expect.poll(() => closed).toBe(2);
  });

  test('a signal is heard in a run that does no I/O', async () => {
    const controller = new AbortController();
    setImmediate(() => {
      controller.abort();
    });
    const createdAt = Date.now();
    const young = Array.from({ length: 50_000 }, (_, index) => ({ id: `tr-${index}`, createdAt }));
    const client = serviceOf({ getTransaction: () => Promise.reject(new Error('not asked')) });
    const report = await reconcile(client, { pending: young, signal: controller.signal });
    expect(report.stopped).toBe('aborted');
    expect(report.pending).toBeLessThan(5_000);
  });

  test('a signal that outlives the run keeps nothing of it', async () => {
    const { signal } = new AbortController();
    const client = serviceOf({
      getTransaction: (id: string) => Promise.resolve({ ...transferSucceeded({ id }).data }),
    });
    await reconcile(client, { pending: transfers(3), signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('a signal that has aborted takes nothing', async () => {
    const { client } = await startKnowing();
    const next = vi.fn(() => ({ done: false as const, value: old('payout-1') }));
    const pending = { [Symbol.iterator]: () => ({ next }) };
    const report = await reconcile(client, { pending, signal: AbortSignal.abort() });
    expect(report).toMatchObject({ ...emptyReport, stopped: 'aborted', queries: 0, cursor: undefined });
    expect(next).not.toHaveBeenCalled();
  });

  test('an abort after everything was read does not count', async () => {
    const { client } = await startQueries(final);
    const controller = new AbortController();
    const report = await reconcile(client, {
      pending: transfers(1),
      signal: controller.signal,
      onProgress: async () => {
        await pause(20); // `pending` ends meanwhile.
        controller.abort();
      },
    });
    expect(report).toMatchObject({ processed: 1, stopped: undefined });
  });
});

describe('the end of `pending`', () => {
  test('a run that ends before its stream resolves after the cleanup of the stream', async () => {
    const { client } = await startQueries(final);
    let closed = false;
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      try {
        yield* transfers(5);
      } finally {
        await pause(50);
        closed = true;
      }
    }
    await reconcile(client, { pending: cursor(), limit: 2 });
    expect(closed).toBe(true);
  });

  test('an iterator at its end is neither asked nor closed again, because a cursor may throw then', async () => {
    const { client } = await startQueries(final);
    const items = transfers(2);
    const next = vi.fn(() => ({ done: items.length === 0, value: items.pop() ?? old('none') }));
    const close = vi.fn(() => ({ done: true as const, value: undefined }));
    const pending = { [Symbol.iterator]: () => ({ next, return: close }) };
    const report = await reconcile(client, { pending });
    expect(report).toMatchObject({ processed: 2, stopped: undefined });
    expect(next).toHaveBeenCalledTimes(3);
    expect(close).not.toHaveBeenCalled();
  });
});

describe('code of yours that throws', () => {
  test('in `pending` rejects with the report of what was done', async () => {
    const { client } = await startQueries(final);
    const cause = new Error('the cursor is gone');
    async function* cursor(): AsyncGenerator<PendingTransfer> {
      yield* transfers(5);
      await Promise.reject(cause);
    }
    const run = reconcile(client, { pending: cursor() });
    const error = await run.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ReconciliationError);
    expect(error).toMatchObject({
      code: 'PENDING_FAILED',
      message: containing('`pending` threw: the cursor is gone'),
      cause,
      report: { processed: 5, stopped: 'error', cursor: { id: 'tr-4' } },
    });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({
      name: 'ReconciliationError',
      code: 'PENDING_FAILED',
      report: { processed: 5 },
    });
  });

  test('in `onProgress` ends the run and rejects, and what the cleanup of `pending` throws does not hide it', async () => {
    const { client } = await startQueries(final);
    function* cursor(): Generator<PendingTransfer> {
      try {
        yield* transfers(50);
      } finally {
        throw new Error('cleanup');
      }
    }
    const onProgress = async (): Promise<void> => {
      await pause(1);
      throw new Error('the log is full');
    };
    const run = reconcile(client, { concurrency: 1, pending: cursor(), onProgress });
    await expect(run).rejects.toMatchObject({
      code: 'ON_PROGRESS_FAILED',
      message: containing('`onProgress` threw: the log is full'),
      report: { processed: 1 },
    });
    await expect(reconcile(client, { concurrency: 1, pending: cursor(), limit: 2 })).rejects.toMatchObject({
      message: containing('`pending` threw: cleanup'),
      report: { processed: 2 },
    });
  });
});
