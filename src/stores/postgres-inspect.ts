import { TransferCallbackError } from '../core/errors.js';
import type { RecordsKept, StoreRecord } from '../core/store.js';
import { runOnce, type PgPool } from './postgres-pool.js';
import { forgetSql, readSql, type Limits } from './postgres-sql.js';

/** The session that holds the lock of a callback. All but `pid` may be null: see `readSql`. */
interface Holder {
  readonly pid: number;
  readonly application: string | null;
  readonly address: string | null;
  readonly since_ms: Milliseconds | null;
}

interface SettledRow {
  readonly fingerprint: string;
  readonly settled_ms: Milliseconds;
  readonly expires_ms: Milliseconds;
}

/** Since when records are kept, and whether this server has all of them. The first two are null before the first claim. */
interface Note {
  readonly retention_ms: string | null;
  readonly since_ms: Milliseconds | null;
  readonly server: 'primary' | 'replica';
}

/** A text if the app has its driver return numbers as text. */
type Milliseconds = number | string;

/** How long `read` and `forget` wait for a client, and then for the reply, without a `statementTimeoutMs`. */
const defaultTimeoutMs = 30_000;

/** Reads what the table and the locks of the database tell about a callback. */
export async function readRecord(pool: PgPool, table: string, id: string, limits: Limits): Promise<StoreRecord> {
  const [, locks, records, notes] = (await run(pool, readSql(table, id), limits)) as { rows: readonly unknown[] }[];
  const settled = records?.rows[0] as SettledRow | undefined;
  // A duplicate that is asking at the moment holds the lock beside the record.
  if (settled !== undefined) {
    return {
      state: 'settled',
      fingerprint: settled.fingerprint,
      ...toTime('settledAt', settled.settled_ms),
      ...toTime('expiresAt', settled.expires_ms),
    };
  }
  const holder = locks?.rows[0] as Holder | undefined;
  if (holder !== undefined)
    return { state: 'claimed', by: describeHolder(holder), ...toTime('since', holder.since_ms) };
  return { state: 'free', ...toKept(notes?.rows[0] as Note) };
}

/** Throws STORE_NOT_PRIMARY. */
function toKept({ server, retention_ms: retentionMs, since_ms: sinceMs }: Note): { kept?: RecordsKept } {
  if (server === 'replica') {
    throw new TransferCallbackError(
      'STORE_NOT_PRIMARY',
      'This PostgreSQL is a replica: it shows no claims and may lack records of its primary. Read that one.',
    );
  }
  const { since } = toTime('since', sinceMs);
  return since === undefined ? {} : { kept: { since, retentionMs: Number(retentionMs) } };
}

/** Deletes the settled record of a callback if it has this fingerprint. Resolves with whether it did. */
export async function forgetRecord(
  pool: PgPool,
  table: string,
  id: string,
  fingerprint: string,
  limits: Limits,
): Promise<boolean> {
  const [, deleted] = (await run(pool, forgetSql(table, id, fingerprint), limits)) as { rowCount: number | null }[];
  return deleted?.rowCount === 1;
}

function run(pool: PgPool, sql: string, { statementTimeoutMs }: Limits): Promise<unknown> {
  return runOnce(pool, sql, statementTimeoutMs ?? defaultTimeoutMs);
}

function describeHolder({ pid, application, address }: Holder): string {
  return [application, address, `backend ${pid}`].filter((part) => part !== null && part !== '').join(', ');
}

/** Omits times that JavaScript cannot represent, such as `infinity`. */
function toTime<Name extends string>(name: Name, ms: Milliseconds | null): Partial<Record<Name, Date>> {
  const time = new Date(Number(ms ?? NaN));
  return Number.isNaN(time.getTime()) ? {} : ({ [name]: time } as Record<Name, Date>);
}
