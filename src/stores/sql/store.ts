import { wholeNumber } from '../../lib/checks.js';
import { describeHolder } from '../../core/delivery.js';
import { leastRetentionMs, receiverDefaults } from '../../core/options.js';
import type { CallbackStore, StoreRecord } from '../../core/store.js';
import { leaseClaims, lockClaims, plainClaims, readRow } from './claims.js';
import { isLive, type Lock, type Row, type Statements } from './statements.js';
import type { SqlEngine } from './transaction.js';

/**
 * A store in a table of a database, with methods for that table.
 *
 * @example
 * async function prepare(store: SqlStore<unknown>): Promise<void> {
 *   await store.migrate();
 *   await store.prune({ olderThanMs: 30 * 86_400_000 });
 * }
 */
export interface SqlStore<Tx> extends CallbackStore<Tx> {
  read(key: string): Promise<StoreRecord>;
  forget(key: string, fingerprint: string): Promise<boolean>;
  /** Creates the table unless it exists. Several processes may call it concurrently. */
  migrate(): Promise<void>;
  /** The SQL that creates the table, for a migration tool. */
  readonly migrationSql: string;
  /**
   * Deletes the records that were settled more than `olderThanMs` ago (above 90 000), and the claims that processes left
   * behind when they died. Resolves with their number.
   */
  prune(options: { olderThanMs: number }): Promise<number>;
}

const pruneBatch = 1_000;

/** Makes a store on an engine. Without `begin` its handlers get no transaction. */
export function makeStore<Tx>(
  engine: SqlEngine<Tx> | Pick<SqlEngine<Tx>, 'query'>,
  sql: Statements,
  idleTimeoutMs: number | null,
): SqlStore<Tx> {
  const { query } = engine;
  return {
    transactional: 'begin' in engine,
    claim: toClaim(engine, sql, idleTimeoutMs),
    async read(id) {
      // The lock first: a record is visible before its lock is free, so a claim that is being settled never reads as free.
      const [lock] = sql.dialect === 'postgres' ? ((await query(sql.readLock(id))) as readonly Lock[]) : [];
      return toRecord(await readRow(query, sql, id), lock);
    },
    async forget(id, fingerprint) {
      const token = `forgotten ${crypto.randomUUID()}`;
      await query(sql.endRecord(id, fingerprint, token));
      return (await readRow(query, sql, id))?.token === token;
    },
    migrationSql: sql.create,
    async migrate() {
      if (await hasTable(query, sql)) return;
      try {
        await query(sql.create);
      } catch (error) {
        // Another process may have created it: IF NOT EXISTS is not atomic.
        if (!(await hasTable(query, sql))) throw error;
      }
    },
    async prune({ olderThanMs }) {
      wholeNumber('olderThanMs', olderThanMs, {
        min: leastRetentionMs,
        max: Number.MAX_SAFE_INTEGER,
        example: receiverDefaults.retentionMs,
      });
      let pruned = 0;
      // From id to id: a search from the start would pass all those again that it keeps.
      for (let last: string | undefined = ''; last !== undefined;) {
        const found = (await query(sql.findOld(olderThanMs, last, pruneBatch))) as readonly { id: string }[];
        const ids = found.map(({ id }) => id);
        if (ids.length > 0) await query(sql.removeOld(ids, olderThanMs));
        pruned += ids.length;
        last = ids.at(-1);
      }
      return pruned;
    },
  };
}

/** Asks for the table by reading it: a role that may not create tables could not run CREATE TABLE IF NOT EXISTS. */
function hasTable(query: SqlEngine<unknown>['query'], { probe }: Statements): Promise<boolean> {
  return query(probe).then(
    () => true,
    () => false,
  );
}

function toClaim<Tx>(
  engine: SqlEngine<Tx> | Pick<SqlEngine<Tx>, 'query'>,
  sql: Statements,
  idleTimeoutMs: number | null,
): CallbackStore<Tx>['claim'] {
  if (!('begin' in engine)) return plainClaims(engine.query, sql) as CallbackStore<Tx>['claim'];
  return sql.dialect === 'postgres' ? lockClaims(engine, sql, idleTimeoutMs) : leaseClaims(engine, sql);
}

function toRecord(row: Row | undefined, lock: Lock | undefined): StoreRecord {
  if (row === undefined || !isLive(row)) {
    if (lock === undefined) return { state: 'free' };
    const since = lock.since === null ? {} : { since: new Date(Number(lock.since)) };
    return { state: 'claimed', by: `backend ${lock.backend}`, ...since };
  }
  const { token, fingerprint } = row;
  if (fingerprint !== null) {
    return {
      state: 'settled',
      fingerprint,
      delivery: token,
      settledAt: new Date(Number(row.settled)),
      expiresAt: new Date(Number(row.expires)),
    };
  }
  const { by } = describeHolder(token);
  return {
    state: 'claimed',
    delivery: token,
    ...(by !== undefined && { by }),
    since: new Date(Number(row.claimed)),
    leaseLeftMs: Number(row.expires) - Number(row.now),
  };
}
