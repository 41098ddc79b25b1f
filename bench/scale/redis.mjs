import { startRedis } from '../support/databases.mjs';
import { moveToCore1 } from '../support/processes.mjs';
import { middle, startLoad } from './load.mjs';

/** The record of a settled callback, as the store writes it, under as many ids as are asked for. */
const fillScript = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  redis.call('set', string.format('transfer-callbacks:%036d', i), ARGV[3], 'px', 604800000 + i % 100000)
end`;
const batch = 50_000;
const connections = 32;

/**
 * Cost per callback and memory, from an empty Redis to `redisIds` remembered. Each size has a Redis and a server of its
 * own, and they take turns in each round, because the machine may be slower in one minute than in the next.
 */
export async function measureRedis({ quick, redisIds }) {
  const all = [0, 10_000, 100_000, 1_000_000, 10_000_000];
  const sizes = all.filter((size) => size <= (quick ? 100_000 : redisIds));
  const [rounds, durationMs] = quick ? [1, 500] : [9, 2_000];
  moveToCore1();
  const rows = [];
  try {
    for (const size of sizes) {
      const redis = await startRedis();
      const row = { size, redis, results: [] };
      rows.push(row);
      const env = { REDIS_PORT: String(redis.port) };
      row.load = await startLoad({ file: 'package.mjs', args: ['listener', 'ioredis'], env, ownCore: true });
      await (quick ? row.load.measure(connections, durationMs) : row.load.warmUp(connections));
      row.record = await redis.command('GET', await redis.command('RANDOMKEY'));
      row.bytesPerId = await fill(row);
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const row of rows) {
        // Each round adds some ten thousand ids, which is little beside a million.
        if (round > 0 && row.size <= 100_000) await fill(row);
        row.results.push(await measure(row, durationMs));
      }
    }
  } finally {
    for (const { load, redis } of rows) {
      await load?.end();
      await redis.stop();
    }
  }
  return [
    {
      title: `Redis store: listener on ioredis, ${connections} connections, by the number of ids remembered`,
      columns: ['ids', 'Node, µs', 'Redis, µs', 'per second', 'p50, ms', 'p99, ms', 'Redis memory per id, bytes'],
      rows: rows.map(({ size, results, bytesPerId }) => [
        size.toLocaleString('en'),
        middle(results, 'cpuMicros', 1),
        middle(results, 'redisMicros', 1),
        middle(results, 'perSecond', 0),
        middle(results, 'p50Ms'),
        middle(results, 'p99Ms'),
        size === 0 ? '' : bytesPerId.toFixed(0),
      ]),
      note: `Medians of ${rounds} rounds.`,
    },
  ];
}

/** Empties Redis and fills it anew. Resolves with the bytes that an id takes. */
async function fill({ size, redis, record }) {
  await redis.command('FLUSHALL', 'SYNC');
  const empty = await readInfo(redis, 'memory', 'used_memory');
  for (let from = 1; from <= size; from += batch) {
    await redis.command('EVAL', fillScript, 0, from, Math.min(size, from + batch - 1), record);
  }
  return ((await readInfo(redis, 'memory', 'used_memory')) - empty) / size;
}

async function measure({ load, redis }, durationMs) {
  const busyBefore = await redisSeconds(redis);
  const result = await load.measure(connections, durationMs);
  return { ...result, redisMicros: (1e6 * ((await redisSeconds(redis)) - busyBefore)) / result.count };
}

async function readInfo(redis, section, field) {
  const info = String(await redis.command('INFO', section));
  return Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)[1]);
}

async function redisSeconds(redis) {
  return (await readInfo(redis, 'cpu', 'used_cpu_user')) + (await readInfo(redis, 'cpu', 'used_cpu_sys'));
}
