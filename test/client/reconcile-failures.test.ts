import { describe, expect, test, vi } from 'vitest';
import { RetryLater } from 'transfer-callbacks';
import { reconcileTransfers, type PendingTransfer } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { old, oneOf, startKnowing, startService } from './support.js';

describe('reconcileTransfers', () => {
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
    const { client } = await startKnowing({ ...success.data });
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
    const { client } = await startKnowing({ ...success.data });
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
    const { client } = await startKnowing({ ...success.data });
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
});
