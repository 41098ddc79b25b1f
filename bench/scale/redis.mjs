import { startRedis } from '../support/databases.mjs';
import { moveToCore1 } from '../support/processes.mjs';
import { startLoad } from './load.mjs';

/** The record of a settled callback, as the store writes it, under as many ids as are asked for. */
const fillScript = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  redis.call('set', string.format('transfer-callbacks:%036d', i), ARGV[3], 'px', 604800000 + i % 100000)
end`;
const batch = 50_000;

/** Cost per callback and memory, from an empty Redis to `ids` remembered. */
export async function measureRedis({ quick, redisIds }) {
  const sizes = [0, 10_000, 100_000, 1_000_000, 10_000_000].filter((size) => size <= (quick ? 100_000 : redisIds));
  moveToCore1();
  const redis = await startRedis();
  const env = { REDIS_PORT: String(redis.port) };
  const load = await startLoad({ file: 'package.mjs', args: ['listener', 'ioredis'], env, ownCore: true });
  const durationMs = quick ? 500 : 3_000;
  try {
    await load.measure(32, durationMs);
    const record = await anyRecord(redis);
    const rows = [];
    for (const size of sizes) {
      await redis.command('FLUSHALL', 'SYNC');
      const empty = await readInfo(redis, 'memory', 'used_memory');
      for (let from = 1; from <= size; from += batch) {
        await redis.command('EVAL', fillScript, 0, from, Math.min(size, from + batch - 1), record);
      }
      const bytes = (await readInfo(redis, 'memory', 'used_memory')) - empty;
      const busyBefore = await redisSeconds(redis);
      const { cpuMicros, perSecond, p50Ms, p99Ms, count } = await load.measure(32, durationMs);
      const redisMicros = (1e6 * ((await redisSeconds(redis)) - busyBefore)) / count;
      rows.push([
        size.toLocaleString('en'),
        cpuMicros.toFixed(1),
        redisMicros.toFixed(1),
        perSecond.toFixed(0),
        p50Ms.toFixed(2),
        p99Ms.toFixed(2),
        size === 0 ? '' : (bytes / size).toFixed(0),
      ]);
    }
    return [
      {
        title: 'Redis store: listener on ioredis, 32 connections, by the number of ids remembered',
        columns: ['ids', 'Node, µs', 'Redis, µs', 'per second', 'p50, ms', 'p99, ms', 'Redis memory per id, bytes'],
        rows,
      },
    ];
  } finally {
    await load.end();
    await redis.stop();
  }
}

async function anyRecord(redis) {
  return redis.command('GET', await redis.command('RANDOMKEY'));
}

async function readInfo(redis, section, field) {
  const info = String(await redis.command('INFO', section));
  return Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(info)[1]);
}

async function redisSeconds(redis) {
  return (await readInfo(redis, 'cpu', 'used_cpu_user')) + (await readInfo(redis, 'cpu', 'used_cpu_sys'));
}
