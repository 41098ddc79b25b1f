import type { CallbackFields } from '../core/fields.js';
import type { PayoutService, QueryCallback, Reading } from '../core/payout-service.js';
import { validateCallback } from '../core/validate.js';
import { describeGiven, hasMethods, invalidArgument } from '../lib/checks.js';
import { describeIssues } from '../lib/standard-schema.js';
import { requireClient } from './checks.js';
import type { TransferClient } from './client.js';
import { TransferClientError } from './errors.js';
import type { Transaction } from './get-transaction.js';

/** What is called of a client: one of your own may have no more. */
export type ReadingClient = Pick<TransferClient, 'getTransaction'>;

/** What a service announces of a transfer that is final. */
export interface Announcement {
  readonly event: 'transfer.success' | 'transfer.failed' | 'transfer.reversed';
  /** The callback, as the service sends it; not validated. */
  readonly callback: unknown;
}

/** What a service responds for a transfer: with an announcement, if it is final. */
export interface Found {
  readonly transaction: Transaction;
  readonly announcement: Announcement | undefined;
}

/** Asks a service for a transfer. Rejects with a `TransferClientError`, or with the reason of the signal. */
export type Ask = (id: string, signal: AbortSignal) => Promise<Found>;

/** A service that can be asked. */
export type AskedService = Pick<PayoutService, 'readCallback'> & { readonly queryCallback: QueryCallback };

/** Returns whether `source` is a service with a `query`. */
export function isAskedService(source: unknown): source is AskedService {
  return hasMethods(source, 'readCallback', 'queryCallback');
}

/**
 * Returns how a receiver's service is asked: by its definition, or the documented one by `client`. Throws
 * INVALID_ARGUMENT if it cannot be asked.
 */
export function requireAsk(client: unknown, receiver: Serving | undefined): Ask {
  const service = receiver?.options?.service;
  if (service?.meanings === undefined) {
    requireClient(client);
    return askClient(client as ReadingClient);
  }
  if (client !== undefined) {
    throw invalidArgument('client', 'left out, because the `service` of the receiver is asked', client);
  }
  if (isAskedService(service)) return askService(service);
  const expected = 'one whose `service` can be asked';
  throw invalidArgument('receiver', expected, receiver, 'defineService({ read, states, query })');
}

/** A receiver, as far as it tells of its service. One made by hand may have no options. */
export interface Serving {
  readonly options?: { readonly service?: PayoutService } | undefined;
}

/** Returns whether the service of a receiver was made by `defineService`. */
export function hasDefinedService(receiver: Serving | undefined): boolean {
  return receiver?.options?.service?.meanings !== undefined;
}

/** Asks the documented service: only two statuses are documented as final (service §3). */
export function askClient(client: ReadingClient): Ask {
  return async function askDocumentedService(id, signal) {
    const transaction = requireTransaction(await client.getTransaction(id, { signal }));
    const event = documentedEvents.get(transaction.status);
    return { transaction, announcement: event && { event, callback: { event, data: transaction } } };
  };
}

const documentedEvents = new Map<string, Announcement['event']>([
  ['SUCCESS', 'transfer.success'],
  ['FAILED', 'transfer.failed'],
]);

/**
 * Returns the transaction that a client has read. Throws UNREADABLE_RESPONSE for any value but an object: a client of
 * your own may resolve with anything.
 */
function requireTransaction(read: Transaction | null | undefined): Transaction {
  if (typeof read === 'object' && read !== null) return read;
  throw new TransferClientError(
    'UNREADABLE_RESPONSE',
    `Expected the client to read a transaction, got ${describeGiven(read)}.`,
  );
}

/** Asks a service by the `query` of its definition, and reads what that resolves with as a callback. */
export function askService({ readCallback, queryCallback }: AskedService): Ask {
  return async function askDefinedService(id, signal) {
    const callback = await queryCallback(id, { signal });
    const reading = readCopy({ readCallback }, callback);
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
  };
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
  return { id, externalId, status, amount, currency, ...(timestamp !== undefined && { timestamp }) };
}
