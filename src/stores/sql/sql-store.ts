import { hasMethods, invalidArgument, requireFunction } from '../../lib/checks.js';
import { lend, type Loan } from './lend.js';
import { resolveOptions, type SqlDialect, type SqlStoreOptions } from './options.js';
import { makeStore, type CheckTraits, type SqlStore } from './store.js';
import { patienceMs, type SqlEngine, type StatementPlace } from './transaction.js';
import { turnTransaction } from './turned-transaction.js';

/**
 * How a library reaches its database.
 *
 * @example
 * const toStore = <Tx>(database: SqlDatabase<Tx>): SqlStore<Tx> => sqlStore(database, { table: 'payout_callbacks' });
 */
export interface SqlDatabase<Tx> {
  /** The database that the library talks to. Use `mysql` for MariaDB. */
  readonly dialect: Exclude<SqlDialect, 'sqlite'>;
  /**
   * Sends SQL without parameters, within the transaction if one is given. Resolves with the rows: as an array, as
   * `{ rows }`, or as the first element of an array. In PostgreSQL the SQL may be several statements, whose rows do not
   * matter.
   */
  query(sql: string, tx?: Tx): unknown;
  /**
   * Begins a transaction, awaits `work`, and commits. Rolls back and rejects if `work` rejects. Calls `work` once: a
   * second call rejects. The store ends a transaction that takes too long: give the library no deadline for it. Waits
   * at most `queueMs` milliseconds for a connection.
   */
  transaction(work: (tx: Tx) => Promise<void>, times: { queueMs: number }): PromiseLike<unknown>;
}

/** How a library reaches SQLite, which has one writer at a time: handlers get no transaction. */
export interface SqliteDatabase {
  readonly dialect: 'sqlite';
  /** Sends one statement without parameters, and returns or resolves with the rows. */
  query(sql: string): unknown;
}

/**
 * Keeps records in a SQL database, through any library. The handler runs inside a transaction of the library, and gets
 * it as `context.tx`: its writes there and the record of its success are committed together, or not at all.
 *
 * A callback costs four round trips beside the handler's own in PostgreSQL, and six in MySQL. Throws INVALID_ARGUMENT.
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

/** What follows a statement in the same message, in PostgreSQL. */
interface PostgresEnds {
  /** After the last statement of a transaction. */
  readonly commit: string;
  /** After ROLLBACK. */
  readonly rollback: string;
}

export const postgresEnds = {
  /**
   * The library ends a second, empty transaction: to end none is a warning, which postgres.js prints. What a deferred
   * constraint refuses is refused before COMMIT: after a COMMIT that was refused, postgres.js gives the connection to
   * the next transaction, and that gets the ROLLBACK.
   */
  andBegin: { commit: ';\nSET CONSTRAINTS ALL IMMEDIATE;\nCOMMIT;\nBEGIN', rollback: ';\nBEGIN' },
  /** For a library that does not end a second transaction if the handler has left a nested one running. */
  only: { commit: ';\nCOMMIT', rollback: '' },
  /** For a library that takes one statement at a time. It commits by itself, and nothing comes between. */
  none: { commit: '', rollback: '' },
} satisfies Record<string, PostgresEnds>;

/** What the store knows of a library. */
export interface LibraryTraits<Tx> extends CheckTraits {
  /** Default `postgresEnds.andBegin`. */
  readonly ends?: PostgresEnds;
  /** Lends the library's transaction to a handler. */
  readonly lend?: (tx: Tx) => Loan<Tx>;
}

/** Makes the store of a library. */
export function makeSqlStore<Tx>(
  database: SqlDatabase<Tx> | SqliteDatabase,
  options: SqlStoreOptions,
  traits?: LibraryTraits<Tx>,
): SqlStore<Tx> {
  const settings = resolveOptions(database.dialect, options);
  const { transaction } = database as { readonly transaction?: unknown };
  if (settings.isTransactional) requireFunction('transaction', transaction, '(work) => db.transaction(work)');
  return makeStore(toEngine(database as SqlDatabase<Tx>, traits), settings, traits);
}

function toEngine<Tx>(
  database: SqlDatabase<Tx>,
  { ends = postgresEnds.andBegin, lend: lendTx = (tx) => lend(tx as Tx & object) }: LibraryTraits<Tx> = {},
): SqlEngine<Tx> {
  const send = async (text: string, tx?: Tx, place?: StatementPlace): Promise<readonly unknown[]> => {
    // In one message: a statement that a handler has left running could fail between the two, and COMMIT would then
    // roll back without an error.
    const end = place === 'last' ? ends.commit : place === 'rollback' ? ends.rollback : '';
    const reply = await database.query(text + end, tx);
    // Prisma does not send a query behind one that fails in the same tick, and resolves with `undefined`.
    if (reply === undefined && tx !== undefined)
      throw new Error('Expected `query` to resolve with rows, got undefined.');
    return toRows(reply);
  };
  return {
    query: send,
    begin: (steps, { timeoutMs = patienceMs, queueMs = timeoutMs }) =>
      turnTransaction<Tx>(
        {
          run: (work) => database.transaction(work, { queueMs }),
          send,
          lend: lendTx,
        },
        steps,
        timeoutMs,
      ),
  };
}

function toRows(reply: unknown): readonly unknown[] {
  const rows = (reply as { rows?: unknown } | null | undefined)?.rows ?? reply;
  if (!Array.isArray(rows)) return [];
  return Array.isArray(rows[0]) ? rows[0] : rows;
}
