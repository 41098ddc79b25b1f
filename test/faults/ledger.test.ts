import { createPool } from 'mysql2/promise';
import type { Pool } from 'pg';
import { mysqlStore, pgStore } from 'transfer-callbacks';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { forkApp } from '../support/programs/child.js';
import { deliverAll } from '../support/programs/ledger.js';
import type { LedgerOptions } from '../support/programs/ledger-app.js';
import { startMariaDb } from '../support/servers/mysql.js';
import { createTables, mysqlTransaction } from '../support/helpers/mysql-transaction.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { startRedis, type RedisServer } from '../support/servers/redis.js';

let postgres: PostgresServer;
let redis: RedisServer;
let pool: Pool;

beforeAll(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  pool = postgres.pool();
  await pgStore(pool).migrate();
  await pool.query('CREATE TABLE ledger (callback text NOT NULL, store text NOT NULL)');
});
afterAll(() => Promise.all([postgres.stop(), redis.stop()]));

/** How many callbacks each store gets: `LEDGER_CALLBACKS=20000 npx vitest run test/faults/ledger.test.ts` takes 7 minutes. */
const count = Number(process.env.LEDGER_CALLBACKS ?? 1_500);
const timeoutMs = 120_000 + 100 * count;

/** Counts the callbacks that were booked, not booked, or booked more than once. */
async function keepLedger(store: LedgerOptions['store']) {
  const options = { store, postgresUrl: postgres.url, redisUrl: redis.url };
  const callbacks = await deliverAll({
    count,
    fork: (port) => forkApp('ledger-app.ts', { ...options, port }),
    restart: () => postgres.restart(),
  });
  const { rows } = await pool.query<{ callback: string; times: string }>(
    'SELECT callback, count(*) AS times FROM ledger WHERE store = $1 GROUP BY callback',
    [store],
  );
  const booked = new Map(rows.map(({ callback, times }) => [callback, Number(times)]));
  const lost = callbacks.filter(({ data }) => !booked.has(data.id)).length;
  const doubled = [...booked.values()].filter((times) => times > 1).length;
  return { booked: booked.size, lost, doubled };
}

test(
  'on pgStore the ledger has exactly one row for each callback, whatever their handlers do wrong',
  async () => {
    expect(await keepLedger('postgres')).toEqual({ booked: count, lost: 0, doubled: 0 });
    const open = await pool.query("SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'");
    expect(open.rowCount).toBe(0);
    const { rows } = await pool.query(
      "SELECT count(*)::int AS records FROM transfer_callbacks WHERE fingerprint <> ''",
    );
    expect(rows).toEqual([{ records: count }]);
  },
  timeoutMs,
);

test(
  'on mysqlStore the ledger has exactly one row for each callback, whatever their handlers do wrong',
  async () => {
    const server = await startMariaDb();
    const pool = createPool({ uri: server.url });
    onTestFinished(async () => {
      await pool.end();
      await server.stop();
    });
    const store = mysqlStore(pool);
    await createTables(pool);
    await store.migrate();
    const callbacks = await deliverAll({
      count,
      fork: (port) => forkApp('mysql-ledger-app.ts', { url: server.url, port }),
      async restart() {
        await server.kill();
        await server.restart();
      },
    });
    const transaction = mysqlTransaction(pool);
    for (const { data } of callbacks) {
      expect([await transaction.count(data.id), (await store.read(data.id)).state]).toEqual([1, 'settled']);
    }
  },
  timeoutMs,
);

test(
  'on the Redis store no callback is lost, and only those whose process was killed after booking are booked again',
  async () => {
    expect(await keepLedger('redis')).toMatchObject({ booked: count, lost: 0 });
  },
  timeoutMs,
);
