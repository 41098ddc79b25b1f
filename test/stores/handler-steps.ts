import type { PoolClient } from 'pg';
import type { TransferCallback } from 'transfer-callbacks';
import { book, receiverOn, type Ledger } from '../support/postgres.js';

export type Steps = (tx: PoolClient, bookNow: () => Promise<void>) => unknown;

/** How a delivery ended, and what was committed. */
export interface Ended {
  readonly outcome: string;
  readonly code: unknown;
  readonly booked: number;
  readonly recorded: number | null;
}

/** Delivers a callback to a handler that runs `steps`, and tells how that ended and what was committed. */
export type Deliver = (callback: TransferCallback, steps: Steps) => Promise<Ended>;

export function deliverOn({ pool, bookings }: Ledger): Deliver {
  return async (callback, steps) => {
    const receiver = receiverOn(pool, {
      onSuccess: async (given, { tx }) => {
        await steps(tx, () => book(given, { tx }));
      },
    });
    const ended = await receiver.receive(callback);
    const { rowCount } = await pool.query('SELECT FROM transfer_callbacks WHERE id = $1', [callback.data.id]);
    return {
      outcome: ended.outcome,
      code: 'error' in ended ? (ended.error as { code?: unknown }).code : undefined,
      booked: (await bookings(callback.data.id)).length,
      recorded: rowCount,
    };
  };
}

export const bookOnce: Steps = (_tx, bookNow) => bookNow();
