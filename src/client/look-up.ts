import { messageOf } from '../lib/text.js';
import { toCallback, type AnnouncedTransaction } from './callback.js';
import type { TransferClient } from './client.js';
import { TransferClientError } from './errors.js';
import type { Transaction } from './get-transaction.js';

/** What the service responds for one transfer. */
export type Lookup =
  | { result: 'final'; event: AnnouncedTransaction['event']; transaction: Transaction }
  | { result: 'open'; transaction: Transaction }
  /** The service responded with 404. What it responds for an unknown transfer is not documented (service §7). */
  | { result: 'unknown'; error: TransferClientError }
  /** The transfer could not be read. This does not mean that it failed. */
  | { result: 'failed'; error: TransferClientError }
  /** The pass ended first. */
  | { result: 'skipped' };

/** Reads a transfer. Never rejects. */
export async function lookUpTransfer(
  client: Pick<TransferClient, 'getTransaction'>,
  id: string,
  signal: AbortSignal,
): Promise<Lookup> {
  try {
    const transaction = await client.getTransaction(id, { signal });
    if (transaction.id !== id && transaction.externalId !== id) {
      throw new TransferClientError('UNREADABLE_RESPONSE', 'The service responded with another transfer.');
    }
    const callback = toCallback(transaction);
    if (callback === undefined) return { result: 'open', transaction };
    return { result: 'final', event: callback.event, transaction };
  } catch (thrown) {
    if (signal.aborted) return { result: 'skipped' };
    const error = toClientError(thrown);
    return { result: error.status === 404 ? 'unknown' : 'failed', error };
  }
}

/** A client of your own may throw anything. */
function toClientError(thrown: unknown): TransferClientError {
  if (isClientError(thrown)) return thrown;
  return new TransferClientError('UNAVAILABLE', `The transfer could not be read: ${messageOf(thrown)}`, {
    cause: thrown,
  });
}

/** By name: the class may be loaded twice. */
function isClientError(thrown: unknown): thrown is TransferClientError {
  return thrown instanceof Error && thrown.name === 'TransferClientError';
}
