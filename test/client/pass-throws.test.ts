import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import {
  ReconciliationError,
  reconcileTransfers,
  type PendingTransfer,
  type ReconciliationReport,
} from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { final, old, oneOf, startKnowing, startQueries, transfers } from './support.js';

describe('code of yours that throws', () => {
  async function catchError(pass: Promise<unknown>): Promise<ReconciliationError<ReconciliationReport>> {
    const error = await pass.then(
      () => expect.fail('it did not reject'),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(ReconciliationError);
    return error as ReconciliationError<ReconciliationReport>;
  }

  test('in `pending` rejects with the report of what was done', async () => {
    const { client } = await startQueries(final);
    const cause = new Error('the cursor is gone');
    function* cursor(): Generator<PendingTransfer> {
      yield* transfers(5);
      throw cause;
    }
    const error = await catchError(reconcileTransfers({ client, receiver: receiverOf(), pending: cursor() }));
    expect(error).toMatchObject({
      code: 'PENDING_FAILED',
      message: '`pending` threw: the cursor is gone',
      cause,
      report: { processed: 5, stopped: 'error', cursor: { id: 'tr-4' } },
    });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: 'PENDING_FAILED', report: { processed: 5 } });
  });

  test('in an asynchronous `onProgress` ends the pass and rejects, and nothing is left unhandled', async () => {
    const { client } = await startQueries(final);
    const pass = reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: transfers(50),
      concurrency: 1,
      onProgress: async () => {
        await pause(1);
        throw new Error('the log is full');
      },
    });
    expect(await catchError(pass)).toMatchObject({
      code: 'ON_PROGRESS_FAILED',
      message: '`onProgress` threw: the log is full',
      report: { processed: 1 },
    });
  });

  test('in the cleanup of `pending` does not hide the cause', async () => {
    const { client } = await startQueries(final);
    function* cursor(): Generator<PendingTransfer> {
      try {
        yield* transfers(50);
      } finally {
        throw new Error('cleanup');
      }
    }
    const onProgress = (): void => {
      throw new Error('the cause');
    };
    const options = { client, concurrency: 1 };
    const both = await catchError(
      reconcileTransfers({ ...options, receiver: receiverOf(), pending: cursor(), onProgress }),
    );
    expect(both.message).toBe('`onProgress` threw: the cause');
    const one = await catchError(
      reconcileTransfers({ ...options, receiver: receiverOf(), pending: cursor(), limit: 2 }),
    );
    expect(one).toMatchObject({ message: '`pending` threw: cleanup', report: { processed: 2 } });
  });
});

describe('reconcileTransfers', () => {
  test('a stream that breaks rejects, once those under way have ended', async () => {
    const success = transferSucceeded();
    const { client } = await startKnowing({ ...success.data });
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
    const { client, received } = await startKnowing();
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
});
