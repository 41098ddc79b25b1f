import type { StoreTransaction } from 'transfer-callbacks/testing';
import type { Dialect } from './databases.js';

/** A library on a database. */
export interface Opened<Client = unknown, Tx = unknown> {
  /** What the library's factory of a store takes. */
  readonly client: Client;
  /** What handlers do in its transactions. On SQLite they have none. */
  readonly transaction?: HandlerTransaction<Tx>;
  /** What a handler may leave running: several steps of the library, of which the last fails. */
  readonly leave?: (tx: never) => PromiseLike<unknown>;
  /** Runs a nested transaction, if the library has them. */
  readonly nest?: (tx: never, work: (inner: never) => Promise<unknown>) => PromiseLike<unknown>;
  /** How a handler may end its transaction through the library. */
  readonly ends?: Readonly<Record<string, (tx: never) => unknown>>;
  /**
   * How a handler may write a row of this name many times, one after the other. Some ways do not stop when `tx`
   * refuses.
   */
  readonly repeats?: Readonly<Record<string, (tx: never, name: string) => PromiseLike<unknown>>>;
  /** Ends its connections. */
  readonly close: () => unknown;
}

export interface Library {
  readonly name: string;
  /** Connects to each database that the library can reach, with at most this number of connections. */
  readonly open: Readonly<Partial<Record<Dialect, (url: string, max: number) => Opened | Promise<Opened>>>>;
}

export type Table = 'written' | 'locked';

/** Forty rows that have the same name. */
export const fortyRows = (name: string): readonly { readonly name: string }[] =>
  Array.from({ length: 40 }, () => ({ name }));

interface HandlerTransaction<Tx> extends StoreTransaction<Tx> {
  /** Reads within the transaction. */
  read(tx: Tx): PromiseLike<unknown>;
  /** Sends a statement as it is. */
  send(tx: Tx, sql: string): PromiseLike<unknown>;
}

interface Steps<Tx> {
  /** Inserts a row, as users of the library do. */
  readonly insert: (tx: Tx, table: Table, name: string) => PromiseLike<unknown>;
  /** Resolves with the rows of `written` that have this name, read outside of any transaction. */
  readonly read: (name: string) => PromiseLike<readonly unknown[]>;
  /** Sends a statement as it is. */
  readonly send: (tx: Tx, sql: string) => PromiseLike<unknown>;
}

export function toTransaction<Tx>({ insert, read, send }: Steps<Tx>): HandlerTransaction<Tx> {
  return {
    read: (tx) => send(tx, 'SELECT * FROM written'),
    write: async (tx, name) => insert(tx, 'written', name),
    count: async (name) => (await read(name)).length,
    fail: async (tx) => send(tx, 'SELECT * FROM not_there'),
    // Behind a comment no `tx` refuses it.
    rollback: async (tx) => send(tx, '/* by an ORM */ ROLLBACK'),
    lock: async (tx, name) => insert(tx, 'locked', name),
    send: async (tx, sql) => send(tx, sql),
  };
}

/** On SQLite. */
export function withoutTransaction({ client, close }: Opened): Opened {
  return { client, close };
}
