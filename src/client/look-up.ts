import type { Announcement, Ask, Transaction } from '../core/payout-service.js';
import { messageOf } from '../lib/text.js';
import { isClientError, TransferClientError } from './errors.js';

/** What the service responds for one transfer. */
export type Lookup =
  | ({ result: 'final'; transaction: Transaction } & Announcement)
  | { result: 'open'; transaction: Transaction }
  /** The service responded with 404. What it responds for an unknown transfer is not documented (service §7). */
  | { result: 'unknown'; error: TransferClientError }
  /** The transfer could not be read. This does not mean that it failed. */
  | { result: 'failed'; error: TransferClientError }
  /** The signal aborted first. */
  | { result: 'skipped' };

/** Reads a transfer. Never rejects. */
export async function lookUpTransfer(ask: Ask, id: string, signal: AbortSignal): Promise<Lookup> {
  try {
    const { transaction, announcement } = await ask(id, signal);
    if (transaction.id !== id && transaction.externalId !== id) {
      throw new TransferClientError('UNREADABLE_RESPONSE', 'The service responded with another transfer.');
    }
    return announcement === undefined
      ? { result: 'open', transaction }
      : { result: 'final', transaction, ...announcement };
  } catch (thrown) {
    if (signal.aborted) return { result: 'skipped' };
    const error = toClientError(thrown);
    return { result: error.status === 404 ? 'unknown' : 'failed', error };
  }
}

/** A service made by hand may throw anything. */
function toClientError(thrown: unknown): TransferClientError {
  if (isClientError(thrown)) return thrown;
  return new TransferClientError('UNAVAILABLE', `The transfer could not be read: ${messageOf(thrown)}`, {
    cause: thrown,
  });
}
