import express, { type Express } from 'express';
import {
  headerToken,
  memoryStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  type Verifier,
} from 'transfer-callbacks';
import { reconcileTransfers, transferService, type TransferService } from 'transfer-callbacks/client';
import { deliver, transferSandbox } from 'transfer-sandbox';
import { invalidCallbacks, transferSucceeded } from 'transfer-callbacks/testing';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { payouts } from './payouts.js';

const path = '/callbacks/transfers';
const token = 'a-secret-of-this-test';
const markPaid = vi.fn<(typeof payouts)['markPaid']>();
const refund = vi.fn<(typeof payouts)['refund']>();

/** Starts your app for a test. Returns it with its receiver. */
function merchant({ service, ...secured }: { verify?: Verifier; service?: TransferService } = {}) {
  const receiver = transferCallbackReceiver({
    ...(service && { service }),
    store: memoryStore(),
    logger: false,
    onSuccess: ({ data }) => markPaid(data.externalId, data.amount),
    onFailed: ({ data }) => refund(data.externalId, data.failureReason),
  });
  const app: Express = express().post(path, transferCallbackRouter({ receiver, ...secured }));
  return { app, receiver };
}

describe('the callbacks of our payouts, delivered as the service does', () => {
  beforeEach(() => {
    vi.resetAllMocks();
  });

  it('mark a payout as paid once for five copies', async () => {
    const callback = transferSucceeded({ externalId: 'payout-1', amount: 15_000 });

    const { acknowledged } = await deliver(merchant().app, callback, { path, copies: 5, concurrent: true });

    expect(acknowledged).toBe(true);
    expect(markPaid.mock.calls).toEqual([['payout-1', 15_000]]);
  });

  it('come again after a failure', async () => {
    markPaid.mockRejectedValueOnce(new Error('The database is down'));

    expect(await deliver(merchant().app, transferSucceeded(), { path })).toEqual({
      acknowledged: true,
      responses: [500, 200],
    });
    expect(markPaid).toHaveBeenCalledTimes(2);
  });

  it('reach an endpoint that checks a token', async () => {
    const app = merchant({ verify: headerToken('X-Callback-Token', token) }).app;

    expect(await deliver(app, transferSucceeded(), { path, headers: { 'X-Callback-Token': token } })).toEqual({
      acknowledged: true,
      responses: [200],
    });
    expect(markPaid).toHaveBeenCalledTimes(1);
  });

  it.each(invalidCallbacks)('are refused: $title', async ({ callback }) => {
    expect(await deliver(merchant().app, callback, { path, retry: false })).toEqual({
      acknowledged: false,
      responses: [400],
    });
  });

  it('are not missed when none comes: the transfer is reconciled', async () => {
    const sandbox = await transferSandbox({ clock: 'manual' });
    const service = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
    const { receiver } = merchant({ service });
    const callbackUrl = 'http://127.0.0.1:9/';
    await service.createTransfer({ callbackUrl, externalId: 'no-callback-1', amount: 900 });
    const pending = [{ id: 'no-callback-1', createdAt: 0 }];

    expect(await reconcileTransfers({ receiver, pending })).toMatchObject({ pending: 1 });
    await sandbox.advance(60_000);
    expect(await reconcileTransfers({ receiver, pending })).toMatchObject({ processed: 1 });
    expect(await reconcileTransfers({ receiver, pending })).toMatchObject({ duplicate: 1 });

    expect(markPaid.mock.calls).toEqual([['no-callback-1', 900]]);
    await sandbox.close();
  });
});
