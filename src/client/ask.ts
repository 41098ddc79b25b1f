import type {
  Announcement,
  Ask,
  CallbackFields,
  Found,
  PayoutService,
  Reading,
  Transaction,
} from '../core/payout-service.js';
import { validateCallback } from '../core/validate.js';
import { invalidArgument } from '../lib/checks.js';
import { describeIssues } from '../lib/standard-schema.js';
import { messageOf } from '../lib/text.js';
import { isClientError, TransferClientError } from './errors.js';

/** A receiver, as far as it tells of its service. One made by hand may have no options. */
export interface Serving {
  readonly options?: { readonly service?: PayoutService } | undefined;
}

/** Returns how the service of a receiver is asked. Throws INVALID_ARGUMENT if it cannot be. */
export function requireAsk(receiver: Serving): Ask {
  const ask = receiver.options?.service?.ask;
  if (ask !== undefined) return ask;
  const expected = 'one whose `service` can be asked';
  throw invalidArgument('receiver', expected, receiver, 'service: transferService({ baseUrl, apiKey, apiSecret })');
}

/** Reads what a `query` has resolved with as a callback. */
export function readQueried(service: Pick<PayoutService, 'readCallback'>, id: string, callback: unknown): Found {
  const reading = readCopy(service, callback);
  switch (reading.kind) {
    case 'pending':
      return { transaction: { id, externalId: '', ...reading.ids, status: reading.state }, announcement: undefined };
    case 'invalid':
      throw unreadable(describeIssues(reading.issues));
    case 'ignored':
      throw unreadable('`read` ignores it');
    case 'callback': {
      const { event } = reading.fields;
      if (event === 'other') throw unreadable('it is an event of `onOther`');
      return { transaction: toTransaction(reading.fields, reading.state), announcement: { event, callback } };
    }
  }
}

/**
 * Reads a copy of what was queried, as the receiver reads a callback. It is read again when it is handed on, and `read`
 * or a schema may change what it reads. What cannot be copied is read itself.
 */
export function readCopy(service: Pick<PayoutService, 'readCallback'>, callback: unknown): Reading {
  let copy = callback;
  try {
    copy = structuredClone(callback);
  } catch {
    // It has functions, for example.
  }
  return validateCallback(copy, service, true);
}

function unreadable(why: string): TransferClientError {
  return new TransferClientError('UNREADABLE_RESPONSE', `Expected \`query\` to resolve with a transfer: ${why}.`);
}

function toTransaction(
  { id, externalId = '', amount, currency, timestamp }: CallbackFields,
  status: string,
): Transaction {
  return { id, externalId, status, amount, currency, timestamp };
}

/** What the service responds for one transfer. */
export type Lookup =
  | ({ state: 'final'; transaction: Transaction } & Announcement)
  | { state: 'open'; transaction: Transaction }
  /** The service responded with 404. What it responds for an unknown transfer is not documented (service §7). */
  | { state: 'unknown'; error: TransferClientError }
  /** The transfer could not be read. This does not mean that it failed. */
  | { state: 'unread'; error: TransferClientError }
  /** The signal aborted first. */
  | { state: 'skipped' };

/** Reads a transfer. Never rejects. */
export async function lookUpTransfer(ask: Ask, id: string, signal: AbortSignal): Promise<Lookup> {
  try {
    const { transaction, announcement } = await ask(id, signal);
    if (transaction.id !== id && transaction.externalId !== id) {
      throw new TransferClientError('UNREADABLE_RESPONSE', 'The service responded with another transfer.');
    }
    return announcement === undefined
      ? { state: 'open', transaction }
      : { state: 'final', ...announcement, transaction };
  } catch (thrown) {
    if (signal.aborted) return { state: 'skipped' };
    const error = toClientError(thrown);
    return { state: error.status === 404 ? 'unknown' : 'unread', error };
  }
}

/** A service made by hand may throw anything. */
function toClientError(cause: unknown): TransferClientError {
  if (isClientError(cause)) return cause;
  return new TransferClientError('UNAVAILABLE', `The transfer could not be read: ${messageOf(cause)}`, { cause });
}
