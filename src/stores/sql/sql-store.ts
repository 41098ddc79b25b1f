import { hasMethods, invalidArgument, requireFunction } from '../../lib/checks.js';
import type { ConnectionMethods } from './lend.js';
import { resolveOptions, type SqlStoreOptions } from './options.js';
import type { SqlDialect } from './dialects.js';
import { makeStore, type SqlStore } from './store.js';
import {
  defaultHeldMs,
  openTransaction,
  patienceMs,
  type SqlEngine,
  type StatementPlace,
  type TransactionTimes,
} from './transaction.js';

/**
 * How a library reaches its database.
 *
 * @example
 * const toStore = <Tx>(database: SqlDatabase<Tx>): SqlStore<Tx> => sqlStore(database, { table: 'payout_callbacks' });
 */
export interface SqlDatabase<Tx> {
  /** What the library talks to; `mysql` for MariaDB, too. */
  readonly dialect: Exclude<SqlDialect, 'sqlite'>;
  /**
   * Sends SQL without parameters, within the transaction if one is given. Resolves with the rows: as an array, as `{ rows }`,
   * or as the first element of an array. In PostgreSQL the SQL may be several statements, whose rows do not matter.
   */
  query(sql: string, tx?: Tx): unknown;
  /** Begins a transaction, awaits `work`, and commits. Rolls back and rejects if `work` rejects. */
  transaction(work: (tx: Tx) => Promise<void>, times: TransactionTimes): PromiseLike<unknown>;
}

/** How a library reaches SQLite, which has one writer at a time: handlers get no transaction. */
export interface SqliteDatabase {
  readonly dialect: 'sqlite';
  /** Sends one statement without parameters, and returns or resolves with the rows. */
  query(sql: string): unknown;
}

/**
 * Keeps records in a SQL database, through any library. The handler runs inside a transaction of the library, and gets it
 * as `context.tx`: its writes there and the record of its success are committed together, or not at all.
 *
 * A callback costs four round trips beside the handler's own in PostgreSQL, and five in MySQL. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = sqlStore<Connection>({
 *   dialect: 'mysql',
 *   query: (sql, tx = database) => tx.execute(sql),
 *   transaction: (work) => database.transaction(work),
 * });
 */
export function sqlStore<Tx>(database: SqlDatabase<Tx>, options?: SqlStoreOptions): SqlStore<Tx>;
export function sqlStore(database: SqliteDatabase, options?: SqlStoreOptions): SqlStore<undefined>;
export function sqlStore<Tx>(database: SqlDatabase<Tx> | SqliteDatabase, options: SqlStoreOptions = {}): unknown {
  if (!hasMethods(database, 'query')) {
    throw invalidArgument('database', 'an object with `dialect`, `query` and `transaction`', database);
  }
  return makeSqlStore(database, options);
}

/** What the store knows of a library. */
export interface LibraryTraits {
  /** The methods of its `tx`, if that is a bare connection. */
  readonly methods?: ConnectionMethods;
  /** What follows the last statement of a transaction in the same message, in PostgreSQL. */
  readonly commit?: string;
}

/** Makes the store of a library. */
export function makeSqlStore<Tx>(
  database: SqlDatabase<Tx> | SqliteDatabase,
  options: SqlStoreOptions,
  // The library commits the second, empty transaction: a COMMIT without one is a warning, which postgres.js prints.
  { methods, commit = ';\nCOMMIT;\nBEGIN' }: LibraryTraits = {},
): SqlStore<Tx> {
  const { sql, idleTimeoutMs } = resolveOptions(database.dialect, options);
  const send = async (text: string, tx?: Tx, place?: StatementPlace): Promise<readonly unknown[]> => {
    // In one message: a statement that a handler has left running could fail between the two, and COMMIT would then roll back
    // without an error.
    const isLast = place === 'last' && database.dialect === 'postgres';
    const reply = await database.query(isLast ? text + commit : text, tx);
    // Prisma does not send a query behind one that fails in the same tick, and resolves with `undefined`.
    if (reply === undefined && tx !== undefined)
      throw new Error('Expected `query` to resolve with rows, got undefined.');
    return toRows(reply);
  };
  if (database.dialect === 'sqlite') return makeStore<Tx>({ query: send }, sql, idleTimeoutMs);
  if (!hasMethods(database, 'transaction')) requireFunction('transaction', undefined, '(work) => db.transaction(work)');
  const engine: SqlEngine<Tx> = {
    query: send,
    begin: (first, { timeoutMs = patienceMs, queueMs = timeoutMs, maxHeldMs = defaultHeldMs }) =>
      openTransaction<Tx>(
        { run: (work) => database.transaction(work, { queueMs, maxHeldMs }), send },
        first,
        methods,
        timeoutMs / 2,
      ),
  };
  return makeStore(engine, sql, idleTimeoutMs);
}

function toRows(reply: unknown): readonly unknown[] {
  const rows = (reply as { rows?: unknown } | null | undefined)?.rows ?? reply;
  if (!Array.isArray(rows)) return [];
  return Array.isArray(rows[0]) ? rows[0] : rows;
}
