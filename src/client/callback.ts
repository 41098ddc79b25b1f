import type { TransferClient } from './client.js';
import type { Transaction } from './get-transaction.js';

/** What is called of a client: one of your own may have no more. */
export type ReadingClient = Pick<TransferClient, 'getTransaction' | 'toCallback'>;

/** What the service announces of a final transaction. */
export interface Announcement {
  readonly event: 'transfer.success' | 'transfer.failed';
  /** The callback, as the service sends it; not validated. */
  readonly callback: unknown;
}

/** `undefined` for a transaction that is not final: only these two statuses are documented (service §3). */
export function announce(client: ReadingClient, transaction: Transaction): Announcement | undefined {
  const event = events.get(transaction.status);
  if (event === undefined) return undefined;
  const documented = { event, data: transaction };
  return { event, callback: client.toCallback === undefined ? documented : client.toCallback(transaction) };
}

const events = new Map<string, Announcement['event']>([
  ['SUCCESS', 'transfer.success'],
  ['FAILED', 'transfer.failed'],
]);

/** What is advised if a schema of your own refuses the documented callback that was made of a transaction. */
export const giveToCallback =
  ' It was given `{ event, data: transaction }`: let the `toCallback` of the client make what the service sends.';
