import { invalidOption, onlyKnownOptions, TransferCallbackError, wholeNumber } from '../core/errors.js';
import { leastRetentionMs } from '../core/options.js';
import type { CallbackStore, Claim, ClaimRequest, Lease } from '../core/store.js';
import { claimSql, forgetSql, nameOf, pruneSql, settleSql, tableSql, type Limits } from './postgres-sql.js';

/** What the store uses of a client of `pg`'s pool. */
export interface PgClient {
  query(text: string): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
}

/** What the store uses of a `pg` pool. */
export interface PgPool {
  connect(): Promise<PgClient>;
}

/** The client that a pool hands out. `pg` declares `connect` twice: with a promise, and with a callback. */
export type PgClientOf<Pool extends PgPool> = Pool['connect'] extends {
  (): Promise<infer Client extends PgClient>;
  (callback: never): void;
}
  ? Client
  : Awaited<ReturnType<Pool['connect']>>;

export interface PostgresStoreOptions {
  /** Default `transfer_callbacks`. */
  table?: string | undefined;
  /** The table's schema. Default: the first of the connection's `search_path`. */
  schema?: string | undefined;
  /** How long one statement may take in the handler's transaction, in milliseconds. Default 30 000. */
  statementTimeoutMs?: number | undefined;
  /**
   * How long the handler's transaction may wait between two statements, in milliseconds; then Postgres ends it, so that
   * a machine that has vanished keeps no callback locked. Default 60 000.
   */
  idleTimeoutMs?: number | undefined;
}

export interface PostgresStore<Client extends PgClient> extends CallbackStore<Client> {
  /** Creates the table, for whoever has no migration tool. May be called again, and by several processes at once. */
  migrate(): Promise<void>;
  /** What `migrate` runs, for a migration tool. */
  readonly migrationSql: string;
  /** Deletes what was settled longer ago, in batches of 1 000 rows; answers how many. Over 90 000 ms. */
  prune(options: { olderThanMs: number }): Promise<number>;
}

const pruneBatch = 1_000;

/**
 * Keeps claims in the database that the handler writes to. The handler runs inside the transaction that `claim` has
 * begun, and gets its client as `context.tx`: what it writes there and the record that it has succeeded are committed
 * together, or not at all. It must neither commit, roll back nor release that client, which takes no more queries once
 * the handler has settled or its lease has lapsed: what a handler has left behind can write nothing later.
 *
 * A claim holds one client of the pool for as long as its handler runs; waiting for another delivery holds none.
 * Throws INVALID_OPTION.
 */
export function postgresStore<Pool extends PgPool>(
  pool: Pool,
  options: PostgresStoreOptions = {},
): PostgresStore<PgClientOf<Pool>> {
  onlyKnownOptions(options, ['table', 'schema', 'statementTimeoutMs', 'idleTimeoutMs']);
  const {
    table: tableName = 'transfer_callbacks',
    schema,
    statementTimeoutMs = 30_000,
    idleTimeoutMs = 60_000,
  } = options;
  if (typeof (pool as Partial<PgPool> | undefined)?.connect !== 'function') {
    throw invalidOption('pool', 'a pool of pg', pool);
  }
  requireName('table', tableName);
  if (schema !== undefined) requireName('schema', schema);
  const limits: Limits = {
    statementTimeoutMs: wholeNumber('statementTimeoutMs', statementTimeoutMs, 1),
    idleTimeoutMs: wholeNumber('idleTimeoutMs', idleTimeoutMs, 1),
  };
  const table = schema === undefined ? nameOf(tableName) : `${nameOf(schema)}.${nameOf(tableName)}`;
  const migrationSql = tableSql(table, nameOf(`${tableName}_settled_at`));
  /** The leases of this process, by callback: a claim that is made again with the same token gets its own. */
  const leases = new Map<string, { token: string; lease: Lease<PgClient> }>();

  async function claim(id: string, request: ClaimRequest): Promise<Claim<PgClient>> {
    const mine = leases.get(id);
    if (mine?.token === request.token) return { state: 'claimed', lease: mine.lease };
    const borrowed = await borrow(request.timeoutMs);
    const { client } = borrowed;
    // Where the network swallows everything nothing else would ever give the client back.
    const deadline = setTimeout(borrowed.destroy, request.timeoutMs ?? request.leaseMs).unref();
    try {
      const results = (await client.query(claimSql(table, id, limits))) as readonly Rows[];
      const [locks, records] = results.slice(-2);
      const record = records?.rows[0] as { fingerprint: string; live: boolean } | undefined;
      if (record?.live === true || locks?.rows[0]?.locked !== true) {
        await client.query('ROLLBACK');
        borrowed.giveBack();
        return record?.live === true ? { state: 'settled', fingerprint: record.fingerprint } : { state: 'in_progress' };
      }
      if (record !== undefined) await client.query(forgetSql(table, id));
      return { state: 'claimed', lease: leaseOf(id, request, borrowed) };
    } catch (error) {
      borrowed.destroy();
      throw error;
    } finally {
      clearTimeout(deadline);
    }
  }

  function leaseOf(id: string, request: ClaimRequest, { client, giveBack, destroy, lost }: Borrowed): Lease<PgClient> {
    const { token, fingerprint, leaseMs, retentionMs, event = '', externalId = '' } = request;
    let settling = false;
    /** The transaction is being ended, or has been: nothing may be written any more. */
    let fenced = false;
    let over: 'settled' | 'gone' | undefined;
    const timer = setTimeout(() => {
      end('gone', destroy);
    }, leaseMs).unref();

    function end(how: 'settled' | 'gone', leave: () => void): void {
      if (over !== undefined) return;
      over = how;
      fenced = true;
      clearTimeout(timer);
      if (leases.get(id)?.lease === lease) leases.delete(id);
      leave();
    }

    const lease: Lease<PgClient> = {
      tx: fencedClient(client, () => fenced),
      renew() {
        if (over !== undefined || lost()) return Promise.resolve(false);
        timer.refresh();
        return Promise.resolve(true);
      },
      async settle() {
        if (over === 'settled') return { overlapped: false };
        if (over === 'gone') throw new TransferCallbackError('LEASE_LOST', 'The transaction has been rolled back.');
        settling = fenced = true;
        try {
          await client.query(settleSql(table, { id, event, externalId, fingerprint, retentionMs }));
        } catch (error) {
          // Perhaps committed, and the answer lost: then the next attempt finds the record.
          end('gone', destroy);
          throw error;
        }
        end('settled', giveBack);
        return { overlapped: false };
      },
      async release() {
        // The caller has given up on a commit that may be under way: nothing else can be said on this connection.
        if (settling) end('gone', destroy);
        if (over !== undefined) return;
        fenced = true;
        try {
          await client.query('ROLLBACK');
        } catch (error) {
          end('gone', destroy);
          throw error;
        }
        end('gone', giveBack);
      },
    };
    leases.set(id, { token, lease });
    return lease;
  }

  /** Takes a client out of the pool, unless that takes so long that the caller has gone. */
  async function borrow(timeoutMs = Infinity): Promise<Borrowed> {
    const askedAt = performance.now();
    const client = await pool.connect();
    if (performance.now() - askedAt >= timeoutMs) {
      client.release();
      throw new TransferCallbackError('STORE_TIMEOUT', `The pool had no client within ${timeoutMs} ms.`);
    }
    let broken = false;
    // Without a listener a connection that breaks would end the process.
    const onError = (): void => {
      broken = true;
    };
    client.on('error', onError);
    let left = false;
    const leave = (destroyed: boolean): void => {
      if (left) return;
      left = true;
      client.release(destroyed);
      // What is destroyed may still have something to complain of.
      if (!destroyed) client.off('error', onError);
    };
    return {
      client,
      lost: () => broken,
      giveBack: () => {
        leave(broken);
      },
      destroy: () => {
        leave(true);
      },
    };
  }

  async function run(sql: string): Promise<unknown> {
    const { client, giveBack, destroy } = await borrow();
    try {
      const result = await client.query(sql);
      giveBack();
      return result;
    } catch (error) {
      destroy();
      throw error;
    }
  }

  return {
    transactional: true,
    claim: (id, request) => claim(id, request) as Promise<Claim<PgClientOf<Pool>>>,
    migrationSql,
    async migrate() {
      // IF NOT EXISTS looks before it creates: two at once would both create.
      await run(
        `BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('transfer-callbacks', 0)); ${migrationSql} COMMIT`,
      );
    },
    async prune({ olderThanMs }) {
      wholeNumber('olderThanMs', olderThanMs, leastRetentionMs, Number.MAX_SAFE_INTEGER);
      let pruned = 0;
      for (;;) {
        const { rowCount } = (await run(pruneSql(table, olderThanMs, pruneBatch))) as { rowCount: number };
        pruned += rowCount;
        if (rowCount < pruneBatch) return pruned;
      }
    },
  };
}

interface Rows {
  rows: readonly Record<string, unknown>[];
}

/** A client of the pool, to be given back or destroyed once. */
interface Borrowed {
  readonly client: PgClient;
  /** Whether its connection has broken. */
  readonly lost: () => boolean;
  readonly giveBack: () => void;
  readonly destroy: () => void;
}

/**
 * The client for the handler. Once fenced it refuses queries: it may be another delivery's by now, or nobody's, and
 * what a handler has left running would be committed there.
 */
function fencedClient(client: PgClient, isFenced: () => boolean): PgClient {
  const run = client.query.bind(client) as (...args: unknown[]) => unknown;
  function query(...args: unknown[]): unknown {
    if (!isFenced()) return run(...args);
    const error = new TransferCallbackError('LEASE_LOST', 'The transaction of this handler is over.');
    const callback = args.at(-1) as ((error: Error) => void) | undefined;
    if (typeof callback !== 'function') return Promise.reject(error);
    queueMicrotask(() => {
      callback(error);
    });
    return undefined;
  }
  return new Proxy(client, {
    get: (target, name): unknown => (name === 'query' ? query : Reflect.get(target, name)),
  });
}

/** Postgres cuts longer names short, and so would take two tables for one. */
function requireName(option: string, value: unknown): void {
  if (typeof value === 'string' && /^[^\0]+$/.test(value) && Buffer.byteLength(value) <= 52) return;
  throw invalidOption(option, 'a name of 1 to 52 bytes', value);
}
