import { hasMethods, invalidSecret } from '../../lib/checks.js';
import { graceMs, waitWithin } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { LendRules } from './lend.js';
import { resolveOptions, type SqlStoreOptions } from './options.js';
import { makeStore, type SqlStore } from './store.js';
import {
  beginOwn,
  patienceMs,
  rollbackMs,
  type ClaimSteps,
  type OwnConnection,
  type Send,
  type SqlEngine,
} from './transaction.js';

/** What the store uses of a connection of a pool of `mysql2/promise`. */
interface MysqlConnection {
  query(options: object): PromiseLike<unknown>;
  release(): void;
  destroy(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

/** What the store uses of the pool. */
interface MysqlPool {
  getConnection(): PromiseLike<MysqlConnection>;
}

const rules: LendRules = {
  queries: ['query', 'execute'],
  // `end` of a connection of a pool returns it to the pool, in the middle of the transaction.
  ignored: ['release', 'end'],
  // The last two end the transaction in the server, and put `autocommit` back to 1.
  controls: ['beginTransaction', 'commit', 'rollback', 'reset', 'changeUser'],
  nests: ['prepare'],
  // The same connection, with callbacks.
  get parts() {
    return { connection: rules };
  },
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
  const engine = toEngine(pool as unknown as MysqlPool);
  return makeStore(engine, resolveOptions('mysql', options)) as unknown as SqlStore<
    Awaited<ReturnType<P['getConnection']>>
  >;
}

function toEngine(pool: MysqlPool): SqlEngine<MysqlConnection> {
  return {
    async query(sql) {
      const taken = new TakenConnection(await takeConnection(pool, patienceMs), patienceMs);
      try {
        return await taken.send(sql);
      } finally {
        taken.giveBack();
      }
    },
    async begin(steps, { timeoutMs = patienceMs, queueMs = timeoutMs }) {
      return beginOwn(new TakenConnection(await takeConnection(pool, queueMs), timeoutMs), steps, timeoutMs);
    },
  };
}

/** Options of the store's own queries. The pool may read rows for its app in another way. */
const plainRows = { rowsAsArray: false, nestTables: false, typeCast: true };

/**
 * A connection that was taken out of the pool. It begins and ends nothing: the statements of mysql.ts do, by
 * `autocommit`.
 */
class TakenConnection implements OwnConnection<MysqlConnection> {
  readonly target: MysqlConnection;
  readonly rules = rules;
  readonly #timeoutMs: number;
  onEnd: (error: Error) => void = () => undefined;

  constructor(connection: MysqlConnection, timeoutMs: number) {
    this.target = connection;
    this.#timeoutMs = timeoutMs;
    connection.on('error', this.#onError);
  }

  readonly send: Send = (sql) => this.#sendWithin(this.#timeoutMs, sql);

  giveBack(): void {
    this.target.off('error', this.#onError);
    // It does nothing if the connection is destroyed.
    this.target.release();
  }

  async rollBack(steps: ClaimSteps): Promise<void> {
    try {
      await steps.undo((sql) => this.#sendWithin(rollbackMs, sql));
    } catch {
      this.target.destroy();
    }
    this.giveBack();
  }

  /** Resolves with the rows of a statement. Ends the connection if it takes longer than `timeoutMs`. */
  async #sendWithin(timeoutMs: number, sql: string): Promise<readonly unknown[]> {
    const giveUp = (): Error => {
      this.target.destroy();
      return new TransferCallbackError('STORE_TIMEOUT', `The database did not reply within ${timeoutMs} ms.`);
    };
    const reply: PromiseLike<unknown> = this.target.query({ sql, ...plainRows });
    const [rows] = (await waitWithin(timeoutMs, reply, giveUp, { moreMs: graceMs })) as readonly [unknown];
    return Array.isArray(rows) ? (rows as readonly unknown[]) : [];
  }

  readonly #onError = (error: Error): void => {
    this.onEnd(error);
  };
}

/** Takes a connection out of the pool. Rejects with STORE_TIMEOUT if the pool has none within `waitMs`. */
function takeConnection(pool: MysqlPool, waitMs: number): Promise<MysqlConnection> {
  return waitWithin(
    waitMs,
    pool.getConnection(),
    (ms) => new TransferCallbackError('STORE_TIMEOUT', `The pool had no connection within ${Math.round(ms)} ms.`),
    {
      onLateValue: (connection) => {
        connection.release();
      },
    },
  );
}
