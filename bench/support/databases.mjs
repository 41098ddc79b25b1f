// Redis and PostgreSQL for a benchmark: those of the tests, on free ports of the loopback.
import { startPostgres as startTestPostgres } from '../../test/support/postgres.ts';
import { packageUnderTest } from '../package.mjs';

export { startRedis, startRedisCluster } from '../../test/support/redis.ts';

/** Starts a PostgreSQL with the tables of servers/postgres.mjs. */
export async function startPostgres() {
  const server = await startTestPostgres();
  const pool = server.pool();
  // All variants would wait for the disk, and longer than for anything that is measured here.
  await pool.query('ALTER SYSTEM SET synchronous_commit = off');
  await pool.query('SELECT pg_reload_conf()');
  await packageUnderTest.postgresStore(pool).migrate();
  await pool.query(`CREATE TABLE handled (id text PRIMARY KEY);
    CREATE TABLE handled_rows (LIKE transfer_callbacks INCLUDING ALL);
    CREATE TABLE ledger (payout text, amount numeric)`);
  return server;
}
