import { describeGiven } from '../lib/checks.js';
import type { TransferClient } from './client.js';
import { TransferClientError } from './errors.js';
import type { Transaction } from './get-transaction.js';
import { translate } from './translate.js';

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
  return { event, callback: translate('toCallback', () => toCallback(client, event, transaction)) };
}

function toCallback(client: ReadingClient, event: Announcement['event'], transaction: Transaction): unknown {
  return client.toCallback === undefined ? { event, data: transaction } : client.toCallback(transaction);
}

/**
 * Returns the transaction that a client has read. Throws UNREADABLE_RESPONSE for any value but an object: a client of
 * your own may resolve with anything.
 */
export function requireTransaction(read: Transaction | null | undefined): Transaction {
  if (typeof read === 'object' && read !== null) return read;
  throw new TransferClientError(
    'UNREADABLE_RESPONSE',
    `Expected the client to read a transaction, got ${describeGiven(read)}.`,
  );
}

const events = new Map<string, Announcement['event']>([
  ['SUCCESS', 'transfer.success'],
  ['FAILED', 'transfer.failed'],
]);

/** What is advised if a schema of your own refuses the documented callback that was made of a transaction. */
export const giveToCallback =
  ' It was given `{ event, data: transaction }`: let the `toCallback` of the client make what the service sends.';
