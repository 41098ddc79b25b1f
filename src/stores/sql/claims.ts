import { TransferCallbackError } from '../../lib/errors.js';
import type { ClaimReply, ClaimRequest, StoreRecord } from '../../core/store.js';
import type { Ids, Row, HandledRow, Table } from './table.js';

/** Sends one statement outside of any transaction, and resolves with its rows. */
export type Query = (sql: string) => Promise<readonly unknown[]>;

/** How often a claim is tried while rows that have ended, or connections that have broken, are in its way. */
export const claimTries = 3;

/** Which rows a call is about. */
export interface Records {
  /** The id of the row of the transfer. All claims of the transfer use the lock of this id. */
  readonly transfer: string;
  /** The ids of the rows that are claimed or read. The id of a refund comes first. */
  readonly ids: Ids;
}

/** How a database keeps the claims and the records of one table. */
export interface Mechanism<Tx> {
  claim(records: Records, request: ClaimRequest): Promise<ClaimReply<Tx>>;
  read(id: string, transfer: string): Promise<StoreRecord>;
  forget(id: string, fingerprint: string): Promise<boolean>;
  /** Tries what else a claim needs of the database. Rejects with what is missing. */
  readonly tryAll?: (records: Records, request: ClaimRequest) => Promise<void>;
}

/** The replies to a claim that is not granted. */
export type Refusal = Exclude<ClaimReply, { state: 'claimed' }>;

export const inProgress: Refusal = { state: 'in_progress' };

export function toRefusal({ fingerprint }: Row): Refusal {
  return fingerprint === null ? inProgress : { state: 'handled', fingerprint };
}

export function toHandledRecord({ token, fingerprint, handledAt, expiresAt }: HandledRow): StoreRecord {
  return {
    state: 'handled',
    fingerprint,
    delivery: token,
    handledAt: new Date(handledAt),
    expiresAt: new Date(expiresAt),
  };
}

/** Whether a call got no connection, or no reply. Another call would wait as long. */
export function isTimeout(error: unknown): error is TransferCallbackError {
  return error instanceof TransferCallbackError && error.code === 'STORE_TIMEOUT';
}

/** Reads a row. */
export async function readRow(query: Query, table: Table, id: string): Promise<Row | undefined> {
  return table.toRow(await query(table.look([id])));
}

/** Ends a handled record if it has this fingerprint. */
export async function endRecord(query: Query, table: Table, id: string, fingerprint: string): Promise<boolean> {
  const token = `forgotten ${crypto.randomUUID()}`;
  await query(table.endRecord(id, fingerprint, token));
  return (await readRow(query, table, id))?.token === token;
}
