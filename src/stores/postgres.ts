import { hasMethods, invalidArgument, invalidSecret, onlyKnownOptions, wholeNumber } from '../core/checks.js';
import { leastRetentionMs, receiverDefaults } from '../core/options.js';
import type { Claim, InspectableStore } from '../core/store.js';
import { PostgresClaims } from './postgres-claims.js';
import { forgetRecord, readRecord } from './postgres-inspect.js';
import { runOnce, surviveRestarts, type PgClient, type PgClientOf, type PgPool } from './postgres-pool.js';
import { existsSql, migrateSql, pruneSql, tableSql, toIdentifier, type Limits } from './postgres-sql.js';

export type { PgClient, PgClientOf, PgPool };

/** Options of `postgresStore`. */
export interface PostgresStoreOptions {
  /** Default `transfer_callbacks`. */
  table?: string | undefined;
  /** The table's schema. Default: the first of the connection's `search_path` that has the table. */
  schema?: string | undefined;
  /**
   * How long one statement may take in the handler's transaction, in milliseconds; and how long `read` and `forget` wait
   * for a client, and then for the reply. Default 30 000; `null` keeps the connection's own `statement_timeout`.
   */
  statementTimeoutMs?: number | null | undefined;
  /**
   * How long the handler's transaction may wait between two statements, in milliseconds. Then Postgres rolls it back,
   * so that the callback of a machine that has crashed is free before the service's first retry. A handler that sends no
   * statement for longer runs again. Default 25 000; `null` keeps the connection's own setting.
   */
  idleTimeoutMs?: number | null | undefined;
}

/** What `postgresStore` returns: a store, with methods for its table. */
export interface PostgresStore<Client extends PgClient> extends InspectableStore<Client> {
  /** Creates the table unless it exists. Several processes may call it concurrently. */
  migrate(): Promise<void>;
  /** The SQL that creates the table, for a migration tool. */
  readonly migrationSql: string;
  /** Deletes records settled more than `olderThanMs` ago (above 90 000), 1 000 at a time. Resolves with their number. */
  prune(options: { olderThanMs: number }): Promise<number>;
}

const pruneBatch = 1_000;

/**
 * Keeps records in the database that the handler writes to. The handler runs inside the transaction that the claim has
 * begun, and gets its client as `context.tx`. Its writes there and the record of its success are committed together or
 * not at all. On that client a transaction of the handler or of its ORM becomes a savepoint. A statement that would end
 * the store's own transaction is refused with TRANSACTION_CONTROL. It takes no queries after the handler has finished.
 *
 * A claim queues for a client of the pool, and holds it while its handler runs. A delivery that waits for another one
 * holds none. Throws INVALID_ARGUMENT.
 */
export function postgresStore<Pool extends PgPool>(
  pool: Pool,
  options: PostgresStoreOptions = {},
): PostgresStore<PgClientOf<Pool>> {
  const { table, limits, migrationSql } = resolveOptions(pool, options);
  surviveRestarts(pool);
  const claims = new PostgresClaims(pool, table, limits);
  return {
    transactional: true,
    queues: true,
    claim: (id, request) => claims.claim(id, request) as Promise<Claim<PgClientOf<Pool>>>,
    read: (id) => readRecord(pool, table, id, limits),
    forget: (id, fingerprint) => forgetRecord(pool, table, id, fingerprint, limits),
    migrationSql,
    migrate: () => migrate(pool, table, migrationSql),
    prune: async ({ olderThanMs }) => prune(pool, table, olderThanMs),
  };
}

async function migrate(pool: PgPool, table: string, migrationSql: string): Promise<void> {
  const { rows } = (await runOnce(pool, existsSql(table))) as { rows: [{ found: string | null }] };
  // A role that may not create tables could not run CREATE TABLE IF NOT EXISTS, even if the table exists.
  if (rows[0].found === null) await runOnce(pool, migrateSql(migrationSql));
}

async function prune(pool: PgPool, table: string, olderThanMs: number): Promise<number> {
  wholeNumber('olderThanMs', olderThanMs, {
    min: leastRetentionMs,
    max: Number.MAX_SAFE_INTEGER,
    example: receiverDefaults.retentionMs,
  });
  // Nothing was settled before 1970, and Postgres has no timestamps for the largest ages.
  const sql = pruneSql(table, Math.min(olderThanMs, Date.now()), pruneBatch);
  for (let pruned = 0; ;) {
    const [, { rowCount }] = (await runOnce(pool, sql)) as [unknown, { rowCount: number }];
    pruned += rowCount;
    if (rowCount < pruneBatch) return pruned;
  }
}

function resolveOptions(
  pool: unknown,
  options: PostgresStoreOptions,
): { table: string; limits: Limits; migrationSql: string } {
  onlyKnownOptions(options, ['table', 'schema', 'statementTimeoutMs', 'idleTimeoutMs']);
  if (!hasMethods(pool, 'connect')) {
    // The value may be a URL with a password in it.
    throw invalidSecret('pool', 'a pool of pg', pool, 'postgresStore(new Pool({ connectionString }))');
  }
  const { table: name = 'transfer_callbacks', schema } = options;
  requireName('table', name);
  if (schema !== undefined) requireName('schema', schema);
  const table = schema === undefined ? toIdentifier(name) : `${toIdentifier(schema)}.${toIdentifier(name)}`;
  return {
    table,
    limits: {
      statementTimeoutMs: limit('statementTimeoutMs', options.statementTimeoutMs, 30_000),
      idleTimeoutMs: limit('idleTimeoutMs', options.idleTimeoutMs, 25_000),
    },
    migrationSql: tableSql(table, toIdentifier(`${name}_settled_at`)),
  };
}

function limit(option: string, value: number | null | undefined, otherwise: number): number | null {
  return value === null ? null : wholeNumber(option, value ?? otherwise, { min: 1, example: otherwise });
}

/** Postgres truncates longer names, and two tables could become one. */
function requireName(option: string, value: unknown): void {
  if (typeof value === 'string' && /^[^\0]+$/.test(value) && Buffer.byteLength(value) <= 52) return;
  throw invalidArgument(option, 'a name of 1 to 52 bytes', value, `${option}: 'transfer_callbacks'`);
}
