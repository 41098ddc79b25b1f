import { createPool, type Pool, type PoolConnection, type PoolOptions, type RowDataPacket } from 'mysql2/promise';
import { mysqlStore } from 'transfer-callbacks';
import type { StoreTransaction } from 'transfer-callbacks/testing';
import { beforeAll, expect, onTestFinished } from 'vitest';
import { startLossyProxy, type LossyProxy } from './lossy-proxy.js';
import { startMariaDb } from './mysql.js';
import { createTables, mysqlTransaction } from '../helpers/transactions.js';

/** A MariaDB with the tables of the store and of its handlers, for the tests of one file. */
export interface ClaimDatabase {
  readonly url: string;
  /** Of a user who may do everything. */
  readonly admin: Pool;
  readonly transaction: Required<StoreTransaction<Pick<PoolConnection, 'query'>>>;
  /** Connects for one test. The user `app` may write, and `reader` may read only. */
  readonly connect: (options?: PoolOptions) => Pool;
  /** The same behind a network that can be broken. */
  readonly connectThroughProxy: (options?: PoolOptions) => Promise<{ readonly pool: Pool; readonly proxy: LossyProxy }>;
  /** Expects all connections of a pool to have their own settings, and no lock or transaction. */
  readonly expectRestored: (pool: Pool) => Promise<void>;
  stop(): Promise<void>;
}

const connectionLimit = 3;

async function startClaimDatabase(): Promise<ClaimDatabase> {
  const server = await startMariaDb();
  const { url } = server;
  const admin = createPool({ uri: url, connectionLimit: 40 });
  const connect = (options: PoolOptions = {}): Pool => {
    const pool = createPool({ uri: url, connectionLimit, ...options });
    // Of a connection that a proxy has cut it rejects.
    onTestFinished(() => pool.end().catch(() => undefined));
    return pool;
  };
  await createTables(admin);
  await mysqlStore(admin).migrate();
  for (const [user, rights] of [
    ['app', 'SELECT, INSERT, UPDATE, DELETE'],
    ['reader', 'SELECT'],
  ] as const) {
    await admin.query(`CREATE USER ${user}@'%'`);
    await admin.query(`GRANT ${rights} ON test.* TO ${user}@'%'`);
  }
  return {
    url,
    admin,
    transaction: mysqlTransaction(admin) as Required<StoreTransaction<Pick<PoolConnection, 'query'>>>,
    connect,
    async connectThroughProxy(options) {
      const behind = new URL(url);
      const proxy = await startLossyProxy(Number(behind.port));
      behind.port = String(proxy.port);
      const pool = connect({ uri: behind.href, ...options });
      // Before the pool ends: through a proxy that is silent it would wait.
      onTestFinished(() => proxy.close());
      return { pool, proxy };
    },
    async expectRestored(pool) {
      const look = 'SELECT @@autocommit AS auto, @@wait_timeout AS idle, @tc_name AS held, SLEEP(0.1)';
      // Each of them waits, so that each has a connection of its own.
      const settings = await Promise.all(Array.from({ length: connectionLimit }, () => select(pool, look)));
      for (const [row] of settings) expect(row).toMatchObject({ auto: 1, idle: 28_800, held: null });
      expect(await select(admin, 'SELECT trx_id FROM information_schema.innodb_trx')).toEqual([]);
    },
    async stop() {
      await admin.end();
      await server.stop();
    },
  };
}

/** Starts it before the first test of the file, and stops it after the last. */
export function startClaimDatabaseForFile(): ClaimDatabase {
  const own = {} as ClaimDatabase;
  beforeAll(async () => {
    Object.assign(own, await startClaimDatabase());
    return () => own.stop();
  });
  return own;
}

export async function select(pool: Pick<Pool, 'query'>, sql: string): Promise<RowDataPacket[]> {
  const [rows] = await pool.query<RowDataPacket[]>(sql);
  return rows;
}

/** Sends a statement before any other on each new connection of a pool. */
export function beginWith(pool: Pool, statement: string): Pool {
  pool.pool.on('connection', (connection) => connection.query(statement));
  return pool;
}
