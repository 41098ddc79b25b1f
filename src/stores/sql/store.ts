import { wholeNumber } from '../../core/checks.js';
import { describeHolder } from '../../core/delivery.js';
import { leastRetentionMs, receiverDefaults } from '../../core/options.js';
import type { CallbackStore, StoreRecord } from '../../core/store.js';
import { leaseClaims, transactionClaims } from './claims.js';
import { isLive, type Row, type Statements } from './statements.js';
import type { SqlEngine } from './transaction.js';

/** A store in a table of a database, with methods for that table. */
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
  const query = engine.query.bind(engine);
  const isTransactional = 'begin' in engine;
  return {
    transactional: isTransactional,
    claim: (isTransactional
      ? transactionClaims(engine, sql, idleTimeoutMs)
      : leaseClaims(query, sql)) as CallbackStore<Tx>['claim'],
    async read(id) {
      const [row] = (await query(sql.read(id))) as readonly Row[];
      return toRecord(row);
    },
    async forget(id, fingerprint) {
      const token = `forgotten ${crypto.randomUUID()}`;
      await query(sql.endRecord(id, fingerprint, token));
      const [row] = (await query(sql.look(id))) as readonly Row[];
      return row?.token === token;
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
      let size: number;
      do {
        const found = (await query(sql.findOld(olderThanMs, pruneBatch))) as readonly { id: string }[];
        size = found.length;
        const ids = found.map(({ id }) => id);
        if (size > 0) await query(sql.removeOld(ids, olderThanMs));
        pruned += size;
      } while (size > 0);
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

function toRecord(row: Row | undefined): StoreRecord {
  if (row === undefined || !isLive(row)) return { state: 'free' };
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
  const holder = [describeHolder(token).by, row.backend].filter((part) => typeof part === 'string').join(', ');
  return {
    state: 'claimed',
    delivery: token,
    ...(holder !== '' && { by: holder }),
    since: new Date(Number(row.claimed)),
    leaseLeftMs: Number(row.expires) - Number(row.now),
  };
}
