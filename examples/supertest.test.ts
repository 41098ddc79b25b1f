import express, { type Express } from 'express';
import request, { type Response } from 'supertest';
import { memoryStore, transferCallbackRouter, urlToken, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { payouts } from './payouts.js';

type Payouts = typeof payouts;

const secret = 'a-secret-of-this-test';

/** Makes your app for a test, with the functions that its handlers call. */
function merchantApp({ markPaid, refund }: Payouts): Express {
  const app = express();
  app.post(
    '/callbacks/transfers/:token',
    transferCallbackRouter({
      store: memoryStore(),
      verify: urlToken(secret),
      logger: false,
      async onSuccess({ data }) {
        await markPaid(data.externalId, data.amount);
      },
      async onFailed({ data }) {
        await refund(data.externalId, data.failureReason);
      },
    }),
  );
  return app;
}

function deliver(app: Express, callback: TransferCallback, token = secret): Promise<Response> {
  return request(app).post(`/callbacks/transfers/${token}`).send(callback);
}

describe('the callbacks of our payouts', () => {
  const markPaid = vi.fn<Payouts['markPaid']>();
  const refund = vi.fn<Payouts['refund']>();

  beforeEach(() => {
    vi.resetAllMocks();
  });

  it('mark a payout as paid once when five copies arrive together', async () => {
    const app = merchantApp({ markPaid, refund });
    const callback = transferSucceeded({ externalId: 'payout-1', amount: 15_000 });

    const responses = await Promise.all(Array.from({ length: 5 }, () => deliver(app, callback)));

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(markPaid.mock.calls).toEqual([['payout-1', 15_000]]);
    expect(refund).not.toHaveBeenCalled();
  });

  it('refund a failed payout on the retry when the first refund did not work', async () => {
    const app = merchantApp({ markPaid, refund });
    const callback = transferFailed({ externalId: 'payout-2', failureReason: 'Wallet closed' });
    refund.mockRejectedValueOnce(new Error('The database is down'));

    const first = await deliver(app, callback);
    const retry = await deliver(app, callback);

    expect([first.status, retry.status]).toEqual([500, 200]);
    expect(refund.mock.calls).toEqual([
      ['payout-2', 'Wallet closed'],
      ['payout-2', 'Wallet closed'],
    ]);
  });

  it('are refused when they are forged', async () => {
    const response = await deliver(merchantApp({ markPaid, refund }), transferFailed(), 'a-guess');

    expect(response.status).toBe(401);
    expect(refund).not.toHaveBeenCalled();
  });
});
