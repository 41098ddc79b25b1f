import type { Express, Request } from 'express';
import type { TransferCallbackReceiver } from 'transfer-callbacks';
import { reconcileTransfer } from 'transfer-callbacks/client';

export interface Books {
  /** Finds the payout of the signed-in customer, by your session. */
  findPayout(request: Request): Promise<{ id: string; state: 'open' | 'paid' | 'failed' }>;
}

/** Adds the page to which the payout service sends the customer back. Its parameters prove nothing: none is read. */
export function addReturn(app: Express, receiver: TransferCallbackReceiver, books: Books): void {
  app.get('/payouts/return', (request, response, next) => {
    async function respond(): Promise<void> {
      const { id, state } = await books.findPayout(request); // never by request.query
      if (state === 'open') await reconcileTransfer({ receiver, id });
      response.json({ state: (await books.findPayout(request)).state });
    }
    respond().catch(next); // Express 4 does not catch a rejection, which would end the process.
  });
}
