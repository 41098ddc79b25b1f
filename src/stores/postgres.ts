import { invalidArgument, onlyKnownOptions, wholeNumber } from '../core/errors.js';
import { leastRetentionMs } from '../core/options.js';
import type { CallbackStore, Claim, ClaimRequest, Lease } from '../core/store.js';
import { leaseTransaction } from './postgres-lease.js';
import {
  checkOut,
  nextTurn,
  runOnce,
  setDeadline,
  surviveRestarts,
  type Checkout,
  type PgClient,
  type PgClientOf,
  type PgPool,
} from './postgres-pool.js';
import {
  claimExpiredSql,
  claimSql,
  existsSql,
  lookUpSql,
  migrateSql,
  pruneSql,
  settleLateSql,
  settleSql,
  slackMs,
  tableSql,
  toIdentifier,
  type Limits,
  type SessionSettings,
} from './postgres-sql.js';

export type { PgClient, PgClientOf, PgPool };

export interface PostgresStoreOptions {
  /** Default `transfer_callbacks`. */
  table?: string | undefined;
  /** The table's schema. Default: the first of the connection's `search_path` that has the table. */
  schema?: string | undefined;
  /**
   * How long one statement may take in the handler's transaction, in milliseconds. Default 30 000; `null` keeps the
   * connection's own `statement_timeout`.
   */
  statementTimeoutMs?: number | null | undefined;
  /**
   * How long the handler's transaction may wait between two statements, in milliseconds. Then Postgres rolls it back,
   * so that the callback of a machine that has vanished is free before the service's first retry. A handler that is
   * silent for longer runs again. Default 25 000; `null` keeps the connection's own setting.
   */
  idleTimeoutMs?: number | null | undefined;
}

export interface PostgresStore<Client extends PgClient> extends CallbackStore<Client> {
  /** Creates the table unless it exists. Several processes may call it concurrently. */
  migrate(): Promise<void>;
  /** The SQL that creates the table, for a migration tool. */
  readonly migrationSql: string;
  /** Deletes records settled more than `olderThanMs` ago (above 90 000), 1 000 at a time. Resolves with their number. */
  prune(options: { olderThanMs: number }): Promise<number>;
}

interface Rows {
  readonly rows: readonly unknown[];
  readonly rowCount: number | null;
}

const pruneBatch = 1_000;

/**
 * Keeps records in the database that the handler writes to. The handler runs inside the transaction that the claim has
 * begun, and gets its client as `context.tx`: what it writes there and the record of its success are committed together
 * or not at all. On that client a transaction of the handler or of its ORM becomes a savepoint, and what would end the
 * store's own transaction is refused with TRANSACTION_CONTROL. It takes no queries once the handler has settled.
 *
 * A claim holds one client of the pool while its handler runs, and queues for it; waiting for another delivery holds
 * none. Throws INVALID_ARGUMENT.
 */
export function postgresStore<Pool extends PgPool>(
  pool: Pool,
  options: PostgresStoreOptions = {},
): PostgresStore<PgClientOf<Pool>> {
  const { table, limits, migrationSql } = resolveOptions(pool, options);
  surviveRestarts(pool);
  /** The leases that this process holds, by callback. */
  const leases = new Map<string, { token: string; lease: Lease<PgClient> }>();
  let warned = false;

  async function claim(id: string, request: ClaimRequest): Promise<Claim<PgClient>> {
    const held = leases.get(id);
    if (held?.token === request.token) return { state: 'claimed', lease: held.lease };
    if (held !== undefined) {
      // Nobody can claim it while this process holds it: no connection is needed to know. Without a turn of the event
      // loop a caller that claims in a loop would starve the timer that ends the lease.
      await nextTurn();
      return { state: 'in_progress' };
    }
    const { timeoutMs, queueMs = timeoutMs, leaseMs } = request;
    const checkout = await checkOut(pool, queueMs);
    // If the network drops every packet, nothing else would return this client to the pool.
    const cancel = setDeadline(timeoutMs ?? leaseMs, checkout.destroy);
    try {
      return await claimOn(checkout, id, request);
    } catch (error) {
      checkout.destroy();
      throw error;
    } finally {
      cancel();
    }
  }

  async function claimOn(checkout: Checkout, id: string, request: ClaimRequest): Promise<Claim<PgClient>> {
    const { client } = checkout;
    const sentAt = performance.now();
    const row = { id, ...request };

    async function insert(sql: string): Promise<Claim<PgClient> | undefined> {
      const { rows } = ((await client.query(sql)) as readonly Rows[]).at(-2) ?? { rows: [] };
      const settings = rows[0] as SessionSettings | undefined;
      if (settings === undefined) return undefined;
      const isLate = (): boolean => performance.now() - sentAt > slackMs;
      const lease = leaseTransaction(checkout, {
        leaseMs: request.leaseMs,
        settleSql: () => (isLate() ? settleLateSql(table, row, settings) : settleSql),
        onRenew: warnWhenExhausted,
        onOver: () => {
          if (leases.get(id)?.lease === lease) leases.delete(id);
        },
      });
      leases.set(id, { token: request.token, lease });
      return { state: 'claimed', lease };
    }

    const claimed = await insert(claimSql(table, row, limits));
    if (claimed !== undefined) return claimed;
    const [found] = (await client.query(lookUpSql(table, id))) as readonly Rows[];
    const record = found?.rows[0] as { fingerprint: string; live: boolean } | undefined;
    if (record?.live === false) {
      const reclaimed = await insert(claimExpiredSql(table, row, limits));
      if (reclaimed !== undefined) return reclaimed;
      await client.query('ROLLBACK');
    }
    checkout.giveBack();
    return record?.live === true ? { state: 'settled', fingerprint: record.fingerprint } : { state: 'in_progress' };
  }

  /** Called while a handler has been running for a while: it may be waiting for a client that its own claim holds. */
  function warnWhenExhausted(): void {
    const { totalCount = Infinity, waitingCount = 0 } = pool;
    if (warned || waitingCount === 0 || leases.size < totalCount) return;
    warned = true;
    process.emitWarning(
      `Claims hold all ${totalCount} clients of the pool, and ${waitingCount} callers wait for one. A handler that uses ` +
        'the pool itself waits for the claims: use `context.tx`, or another pool. If none does, raise `max`.',
      { code: 'TRANSFER_CALLBACKS_POSTGRES_POOL_EXHAUSTED' },
    );
  }

  return {
    transactional: true,
    queues: true,
    claim: (id, request) => claim(id, request) as Promise<Claim<PgClientOf<Pool>>>,
    migrationSql,
    async migrate() {
      const { rows } = (await runOnce(pool, existsSql(table))) as { rows: [{ exists: boolean }] };
      // A role that may not create could not even run CREATE TABLE IF NOT EXISTS.
      if (!rows[0].exists) await runOnce(pool, migrateSql(migrationSql));
    },
    async prune({ olderThanMs }) {
      wholeNumber('olderThanMs', olderThanMs, leastRetentionMs, Number.MAX_SAFE_INTEGER);
      // Nothing was settled before 1970, and Postgres has no timestamps for the largest ages.
      const sql = pruneSql(table, Math.min(olderThanMs, Date.now()), pruneBatch);
      for (let pruned = 0; ;) {
        const { rowCount } = (await runOnce(pool, sql)) as { rowCount: number };
        pruned += rowCount;
        if (rowCount < pruneBatch) return pruned;
      }
    },
  };
}

function resolveOptions(
  pool: unknown,
  options: PostgresStoreOptions,
): { table: string; limits: Limits; migrationSql: string } {
  onlyKnownOptions(options, ['table', 'schema', 'statementTimeoutMs', 'idleTimeoutMs']);
  if (typeof (pool as Partial<PgPool> | undefined)?.connect !== 'function') {
    throw invalidArgument('pool', 'a pool of pg', pool);
  }
  const { table: name = 'transfer_callbacks', schema, statementTimeoutMs = 30_000, idleTimeoutMs = 25_000 } = options;
  requireName('table', name);
  if (schema !== undefined) requireName('schema', schema);
  const table = schema === undefined ? toIdentifier(name) : `${toIdentifier(schema)}.${toIdentifier(name)}`;
  return {
    table,
    limits: {
      statementTimeoutMs: limit('statementTimeoutMs', statementTimeoutMs),
      idleTimeoutMs: limit('idleTimeoutMs', idleTimeoutMs),
    },
    migrationSql: tableSql(table, toIdentifier(`${name}_settled_at`)),
  };
}

function limit(option: string, value: number | null): number | null {
  return value === null ? null : wholeNumber(option, value, 1);
}

/** Postgres truncates longer names, and two tables could become one. */
function requireName(option: string, value: unknown): void {
  if (typeof value === 'string' && /^[^\0]+$/.test(value) && Buffer.byteLength(value) <= 52) return;
  throw invalidArgument(option, 'a name of 1 to 52 bytes', value);
}
