import { packageUnderTest } from '../package.mjs';
import { startPostgres } from '../support/databases.mjs';
import { startLoad } from './load.mjs';

/** Rows as the store writes them, settled evenly over the last 30 days, in the order of time. */
const fillSql = `INSERT INTO transfer_callbacks
  SELECT gen_random_uuid(), 'transfer.success', 'payout-' || i, '["SUCCESS",15000,"XAF","payout-' || i || '"]',
    settled_at, settled_at + interval '7 days'
  FROM generate_series($1::int, $2::int) AS i,
    LATERAL (SELECT now() - interval '30 days' * (1 - i / $3::float8) AS settled_at) AS t`;
const batch = 250_000;
const halfAMonthMs = 15 * 86_400_000;

/** Cost per callback on an empty table, on a full one, and while `prune` deletes half of that. */
export async function measurePostgres({ quick, postgresRows }) {
  const size = quick ? 50_000 : postgresRows;
  const postgres = await startPostgres();
  const pool = postgres.pool({ max: 2 });
  const env = { POSTGRES_URL: postgres.url };
  const load = await startLoad({ file: 'postgres.mjs', args: ['listener'], env });
  const durationMs = quick ? 500 : 3_000;
  const rows = [];
  const measure = async (name) => {
    const { cpuMicros, perSecond, p50Ms, p99Ms } = await load.measure(32, durationMs);
    rows.push([name, cpuMicros.toFixed(0), perSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2)]);
  };
  try {
    await load.measure(32, durationMs);
    await measure('0');
    for (let from = 1; from <= size; from += batch) {
      await pool.query(fillSql, [from, Math.min(size, from + batch - 1), size]);
    }
    // What a table of this age has behind it: otherwise the measurement would pay for the filling.
    await pool.query('VACUUM ANALYZE transfer_callbacks');
    await pool.query('CHECKPOINT');
    const bytes = await pool.query(`SELECT pg_total_relation_size('transfer_callbacks') AS bytes`);
    await measure(size.toLocaleString('en'));

    const startedAt = performance.now();
    const pruning = packageUnderTest.postgresStore(pool).prune({ olderThanMs: halfAMonthMs });
    await measure(`${size.toLocaleString('en')}, with \`prune\` running`);
    const pruned = await pruning;
    const seconds = (performance.now() - startedAt) / 1_000;
    await measure(`${(size - pruned).toLocaleString('en')}, after \`prune\``);
    return [
      {
        title: 'PostgreSQL store: listener, 32 connections, pool of 16, by the number of rows',
        columns: ['rows', 'Node, µs', 'per second', 'p50, ms', 'p99, ms'],
        rows,
        note:
          `${(bytes.rows[0].bytes / size).toFixed(0)} bytes of table and indexes per row. \`prune\` deleted ` +
          `${pruned.toLocaleString('en')} rows in ${seconds.toFixed(1)} s, beside the load.`,
      },
    ];
  } finally {
    await load.end();
    await postgres.stop();
  }
}
