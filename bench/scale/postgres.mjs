import { packageUnderTest } from '../package.mjs';
import { startPostgres } from '../support/databases.mjs';
import { median, medianOf } from '../support/statistics.mjs';
import { middle, startLoad } from './load.mjs';

/** Rows as the store writes them, settled evenly over the last 30 days, in the order of time. */
const fillSql = `INSERT INTO transfer_callbacks
  SELECT gen_random_uuid(), 'transfer.success', 'payout-' || i, '["SUCCESS",15000,"XAF","payout-' || i || '"]',
    settled_at, settled_at + interval '7 days'
  FROM generate_series($1::int, $2::int) AS i,
    LATERAL (SELECT now() - interval '30 days' * (1 - i / $3::float8) AS settled_at) AS t`;
const batch = 250_000;
const halfAMonthMs = 15 * 86_400_000;
const connections = 32;

/** A PostgreSQL with a server of the package, and its load. */
async function startOne() {
  const postgres = await startPostgres();
  try {
    const load = await startLoad({ file: 'postgres.mjs', args: ['listener'], env: { POSTGRES_URL: postgres.url } });
    return { postgres, pool: postgres.pool({ max: 2 }), load };
  } catch (error) {
    await postgres.stop();
    throw error;
  }
}

/**
 * Cost per callback on a full table, and while `prune` deletes half of it. An empty table takes turns with it, because
 * the machine may be slower in one minute than in the next.
 */
export async function measurePostgres({ quick, postgresRows }) {
  const size = quick ? 50_000 : postgresRows;
  const [rounds, durationMs] = quick ? [1, 500] : [7, 3_000];
  const started = [];
  try {
    for (let one = 0; one < 2; one += 1) started.push(await startOne());
    const [empty, full] = started;
    if (!quick) for (const { load } of started) await load.warmUp(connections);
    for (const { pool } of started) await pool.query('TRUNCATE transfer_callbacks, ledger');
    const bytesPerRow = await fill(full.pool, size);
    const rows = [];
    const onEmpty = [];
    const compare = async (name) => {
      const [onFull, ratios] = [[], []];
      for (let round = 0; round < rounds; round += 1) {
        const base = await empty.load.measure(connections, durationMs);
        await empty.pool.query('TRUNCATE transfer_callbacks, ledger');
        const result = await full.load.measure(connections, durationMs);
        onEmpty.push(base);
        onFull.push(result);
        ratios.push(result.perSecond / base.perSecond);
      }
      rows.push(toRow(name, onFull, median(ratios).toFixed(2)));
    };
    await compare(size.toLocaleString('en'));
    const beside = await pruneBesideLoad(full, durationMs);
    // Beside `prune` the empty table would be slower too: it shares the machine.
    const ratio = medianOf(beside.results, 'perSecond') / medianOf(onEmpty, 'perSecond');
    rows.push(toRow(`${size.toLocaleString('en')}, with \`prune\` running`, beside.results, ratio.toFixed(2)));
    await compare(`${(size - beside.deleted).toLocaleString('en')}, after \`prune\``);
    rows.unshift(toRow('0', onEmpty, ''));
    return [
      {
        title: `PostgreSQL store: listener, ${connections} connections, pool of 16, by the number of rows`,
        columns: ['rows', 'Node, µs', 'per second', 'p50, ms', 'p99, ms', '/ empty table'],
        rows,
        note:
          `Medians of ${rounds} rounds, ${beside.results.length} with \`prune\` running. ` +
          `${bytesPerRow.toFixed(0)} bytes of table and indexes per row. \`prune\` deleted ` +
          `${beside.deleted.toLocaleString('en')} rows in ${beside.seconds.toFixed(0)} s, beside the load.`,
      },
    ];
  } finally {
    for (const { load, postgres } of started) {
      await load.end();
      await postgres.stop();
    }
  }
}

/** Fills the table. Resolves with the bytes that a row takes. */
async function fill(pool, size) {
  for (let from = 1; from <= size; from += batch) {
    await pool.query(fillSql, [from, Math.min(size, from + batch - 1), size]);
  }
  // What a table of this age has behind it: otherwise the measurement would pay for the filling.
  await pool.query('VACUUM ANALYZE transfer_callbacks');
  await pool.query('CHECKPOINT');
  const { rows } = await pool.query(`SELECT pg_total_relation_size('transfer_callbacks') AS bytes`);
  return rows[0].bytes / size;
}

/** Prunes half of the rows, and measures rounds until that has ended. */
async function pruneBesideLoad({ pool, load }, durationMs) {
  const startedAt = performance.now();
  const pruning = packageUnderTest.postgresStore(pool).prune({ olderThanMs: halfAMonthMs });
  let hasEnded = false;
  const ended = pruning.finally(() => (hasEnded = true));
  ended.catch(() => undefined);
  const results = [];
  do {
    const result = await load.measure(connections, durationMs);
    // A round in which `prune` has ended is half without it.
    if (!hasEnded || results.length === 0) results.push(result);
  } while (!hasEnded);
  return { results, deleted: await ended, seconds: (performance.now() - startedAt) / 1_000 };
}

function toRow(name, results, ratio) {
  return [
    name,
    middle(results, 'cpuMicros', 0),
    middle(results, 'perSecond', 0),
    middle(results, 'p50Ms'),
    middle(results, 'p99Ms'),
    ratio,
  ];
}
