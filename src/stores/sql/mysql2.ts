import { hasMethods, invalidSecret } from '../../lib/checks.js';
import { callWithin, graceMs } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { lend, type LendRules } from './lend.js';
import { mysqlMechanism } from './mysql.js';
import { resolveOptions, type SqlStoreOptions } from './options.js';
import { makeStore, type SqlStore } from './store.js';
import { openTransaction, patienceMs, rollbackMs, type SqlEngine } from './transaction.js';

/** What the store uses of a connection of a pool of `mysql2/promise`. */
interface MysqlConnection {
  query(options: object): PromiseLike<unknown>;
  release(): void;
  destroy(): void;
  on(event: 'error', listener: () => void): unknown;
  off(event: 'error', listener: () => void): unknown;
}

/** What the store uses of the pool. */
interface MysqlPool {
  getConnection(): PromiseLike<MysqlConnection>;
}

type Rows = readonly unknown[];

const rules: LendRules = {
  queries: ['query', 'execute'],
  // `end` of a connection of a pool gives it back, in the middle of the transaction.
  ignored: ['release', 'end'],
  controls: ['beginTransaction', 'commit', 'rollback'],
  nests: ['prepare'],
};

/**
 * Keeps records in MySQL or MariaDB, through a pool of `mysql2/promise`. Handlers get a connection of the pool as
 * `context.tx`. A callback costs four round trips beside the handler's own. Throws INVALID_ARGUMENT.
 *
 * @example
 * const store = mysqlStore(createPool(url));
 */
export function mysqlStore<P extends { getConnection: (...args: never) => unknown }>(
  pool: P,
  options: SqlStoreOptions = {},
): SqlStore<Awaited<ReturnType<P['getConnection']>>> {
  // A pool of callbacks has `promise`. The value may be a URL with a password in it.
  const hasCallbacks = hasMethods(pool, 'getConnection', 'promise');
  if (hasCallbacks || !hasMethods(pool, 'getConnection')) {
    const example = hasCallbacks ? 'mysqlStore(pool.promise())' : 'mysqlStore(createPool(url))';
    throw invalidSecret('pool', 'a pool of mysql2/promise', pool, example);
  }
  const { table, idleTimeoutMs } = resolveOptions('mysql', options);
  const engine = toEngine(pool as unknown as MysqlPool);
  const mechanism = mysqlMechanism(engine, table, { idleTimeoutMs });
  return makeStore(engine.query, table, mechanism, { idleTimeoutMs }) as unknown as SqlStore<
    Awaited<ReturnType<P['getConnection']>>
  >;
}

function toEngine(pool: MysqlPool): SqlEngine<MysqlConnection> {
  return {
    async query(sql) {
      const connection = await takeConnection(pool, patienceMs);
      try {
        return await send(connection, sql, patienceMs);
      } finally {
        connection.release();
      }
    },
    async begin(opening, { timeoutMs = patienceMs, queueMs = timeoutMs }) {
      const connection = await takeConnection(pool, queueMs);
      return openTransaction(
        {
          // Begins and ends nothing: the statements of mysql.ts do, by `autocommit`.
          async run(work) {
            try {
              await work(connection);
            } finally {
              // Of a connection that is destroyed it does nothing.
              connection.release();
            }
          },
          send: (sql, _tx, place) => send(connection, sql, place === 'undo' ? rollbackMs : timeoutMs),
          lend: (tx) => lend(tx, rules),
          watch(onEnd) {
            connection.on('error', onEnd);
            return () => {
              connection.off('error', onEnd);
            };
          },
          destroy() {
            connection.destroy();
          },
        },
        opening,
        timeoutMs,
      );
    },
  };
}

/** Options of the store's own queries. The pool may read rows for its app in another way. */
const plainRows = { rowsAsArray: false, nestTables: false, typeCast: true };

/** Sends a statement, and resolves with its rows. Ends the connection if that takes longer than `timeoutMs`. */
async function send(connection: MysqlConnection, sql: string, timeoutMs: number): Promise<Rows> {
  const giveUp = (): Error => {
    connection.destroy();
    return new TransferCallbackError('STORE_TIMEOUT', `The database did not reply within ${timeoutMs} ms.`);
  };
  const reply = await callWithin(timeoutMs, () => connection.query({ sql, ...plainRows }), giveUp, graceMs);
  const [rows] = reply as readonly [unknown];
  return Array.isArray(rows) ? (rows as Rows) : [];
}

/** Takes a connection out of the pool. Rejects with STORE_TIMEOUT if the pool has none within `waitMs`. */
function takeConnection(pool: MysqlPool, waitMs: number): Promise<MysqlConnection> {
  return callWithin(
    waitMs,
    () => pool.getConnection(),
    (ms) => new TransferCallbackError('STORE_TIMEOUT', `The pool had no connection within ${Math.round(ms)} ms.`),
    0,
    (connection) => {
      connection.release();
    },
  );
}
