// What a callback costs when the store remembers many: `receive` without HTTP, on each store, empty and full in turns.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import { callbackText, packageUnderTest } from './callback.mjs';
import { startPostgres, startRedis } from './support/databases.mjs';
import { percentile } from './support/processes.mjs';

const { memoryStore, pgStore, redisStore, transferCallbackReceiver } = packageUnderTest;
const handle = () => undefined;

/** How many callbacks are received concurrently. */
const concurrency = 32;

function toReceiver(store) {
  return transferCallbackReceiver({ store, onSuccess: handle, onFailed: handle });
}

/** Each makes a store that remembers nothing yet. `fill` resolves with the bytes that each of `count` callbacks takes. */
const stores = {
  async memory(count) {
    const receiver = toReceiver(memoryStore({ maxEntries: 10 * count }));
    const fill = async () => {
      const before = heapUsed();
      await receive(receiver, count);
      return (heapUsed() - before) / count;
    };
    return { receiver, fill, end: () => undefined };
  },

  async Redis(count) {
    const server = await startRedis();
    const client = new Redis(server.port, '127.0.0.1');
    const receiver = toReceiver(redisStore(client));
    const usedMemory = async () => Number(/^used_memory:(\d+)/m.exec(await client.info('memory'))[1]);
    const fill = async () => {
      await receive(receiver, 1);
      const record = await client.get(await client.randomkey());
      const before = await usedMemory();
      await inBatches(count, (from, to) => client.eval(fillScript, 0, from, to, record));
      return ((await usedMemory()) - before) / count;
    };
    const end = async () => {
      client.disconnect();
      await server.stop();
    };
    return { receiver, fill, end };
  },

  async PostgreSQL(count) {
    const server = await startPostgres();
    const pool = new Pool({ connectionString: server.url, max: 16 }).on('error', () => undefined);
    const receiver = toReceiver(pgStore(pool));
    const size = async () => {
      const { rows } = await pool.query("SELECT pg_total_relation_size('transfer_callbacks') AS bytes");
      return rows[0].bytes;
    };
    const fill = async () => {
      const before = await size();
      await inBatches(count, (from, to) => pool.query(fillSql, [from, to]));
      // What a table of this age has behind it: otherwise the measurement would pay for the filling.
      await pool.query('VACUUM ANALYZE transfer_callbacks');
      await pool.query('CHECKPOINT');
      return ((await size()) - before) / count;
    };
    const end = async () => {
      await pool.end();
      await server.stop();
    };
    return { receiver, fill, end };
  },
};

/** The record of a handled callback, as the store writes it, under many ids. */
const fillScript = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  redis.call('set', string.format('transfer-callbacks:%036d', i), ARGV[3], 'px', 604800000 + i % 100000)
end`;

/** Rows as the store writes them, handled in the last week. */
const fillSql = `INSERT INTO transfer_callbacks
  SELECT gen_random_uuid(), '2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2h1-' || i, 'transfer.success', 'payout-' || i,
    '["SUCCESS",15000,"XAF","payout-' || i || '"]', handled, handled, handled + 604800000
  FROM generate_series($1::int, $2::int) AS i,
    LATERAL (SELECT (extract(epoch FROM now()) * 1000)::bigint - 1000 * (i % 604800) AS handled) AS t`;

async function inBatches(count, fill) {
  const batch = 50_000;
  for (let from = 1; from <= count; from += batch) await fill(from, Math.min(count, from + batch - 1));
}

/** Receives fresh callbacks. Resolves with the processor time of each in this process, and the duration of all. */
async function receive(receiver, count) {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  let left = count;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      // Through a Buffer, as it is read from a request: a text that JavaScript put together would be kept by its slices.
      const bytes = Buffer.from(callbackText(crypto.randomUUID()));
      const { outcome } = await receiver.receive(JSON.parse(bytes.toString()));
      if (outcome !== 'processed') throw new Error(`Expected the callback to be processed, got ${outcome}.`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, count) }, worker));
  const { user, system } = process.cpuUsage(before);
  return { cpuMicros: (user + system) / count, durationMs: performance.now() - startedAt };
}

function heapUsed() {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

/** Resolves with a row for each store: what a callback costs with so many remembered, and how much more than with none. */
export async function measureScale({ records, rounds, requests }) {
  const rows = [];
  for (const [name, make] of Object.entries(stores)) {
    const [empty, full] = [await make(records), await make(records)];
    try {
      // V8 compiles what it will.
      for (const { receiver } of [empty, full]) await receive(receiver, 3 * requests);
      const bytesEach = await full.fill();
      const measured = [];
      for (let round = 0; round < rounds; round += 1) {
        // In turns: the machine may be slower in one minute than in the next.
        const base = await receive(empty.receiver, requests);
        const { cpuMicros, durationMs } = await receive(full.receiver, requests);
        measured.push([cpuMicros, cpuMicros / base.cpuMicros, durationMs / base.durationMs]);
      }
      const [cpuMicros, timesCpu, timesWall] = [0, 1, 2].map((at) =>
        percentile(
          measured.map((row) => row[at]),
          0.5,
        ),
      );
      rows.push({ name, records, bytesEach, cpuMicros, timesCpu, timesWall });
    } finally {
      await empty.end();
      await full.end();
    }
  }
  return rows;
}
