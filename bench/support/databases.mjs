// Redis and PostgreSQL for a benchmark: those of the tests, on free ports of the loopback.
import { startPostgres as startTestPostgres } from '../../test/support/servers/postgres.ts';
import { startRedis } from '../../test/support/servers/redis.ts';
import { packageUnderTest } from '../callback.mjs';

export { startRedis };

/** Starts a PostgreSQL with the tables of servers/postgres.mjs. */
export async function startPostgres() {
  const server = await startTestPostgres();
  const pool = server.pool();
  // All variants would wait for the disk, and longer than for anything that is measured here.
  await pool.query('ALTER SYSTEM SET synchronous_commit = off');
  await pool.query('SELECT pg_reload_conf()');
  await packageUnderTest.pgStore(pool).migrate();
  await pool.query(`CREATE TABLE handled_rows (LIKE transfer_callbacks INCLUDING ALL);
    CREATE TABLE ledger (payout text, amount numeric)`);
  return server;
}

/** The versions of the servers. */
export async function databaseVersions() {
  const redis = await startRedis();
  const postgres = await startTestPostgres();
  try {
    const info = String(await redis.command('INFO', 'server'));
    const { rows } = await postgres.pool().query('SHOW server_version');
    return { Redis: /^redis_version:(\S+)/m.exec(info)[1], PostgreSQL: rows[0].server_version };
  } finally {
    await redis.stop();
    await postgres.stop();
  }
}
