import { startRedis, startRedisCluster } from '../support/databases.mjs';
import { startLoad } from './load.mjs';

/** One worker and four, on one Redis and on a Cluster of three masters, all on this machine. */
export async function measureWorkers({ quick }) {
  const durationMs = quick ? 500 : 4_000;
  const rows = [];
  const measure = async (name, args, env, workers) => {
    const load = await startLoad({ file: 'package.mjs', args, env, workers });
    try {
      for (let warmUp = 0; warmUp < 2; warmUp += 1) await load.measure(64, durationMs / 2);
      const { perSecond, cpuMicros, p50Ms, p99Ms } = await load.measure(64, durationMs);
      rows.push([name, workers, perSecond.toFixed(0), cpuMicros.toFixed(1), p50Ms.toFixed(2), p99Ms.toFixed(2)]);
    } finally {
      await load.end();
    }
  };
  const redis = await startRedis();
  try {
    const env = { REDIS_PORT: String(redis.port) };
    for (const workers of [1, 4]) await measure('one Redis', ['listener', 'ioredis'], env, workers);
  } finally {
    await redis.stop();
  }
  const cluster = await startRedisCluster();
  try {
    const env = { REDIS_NODES: JSON.stringify(cluster.nodes) };
    for (const workers of [1, 4]) await measure('Cluster, three masters', ['listener', 'cluster'], env, workers);
  } finally {
    await cluster.stop();
  }
  return [
    {
      title: 'Workers: listener on ioredis, 64 connections; servers, Redis and load share the cores of one machine',
      columns: ['Redis', 'workers', 'per second', 'Node, µs', 'p50, ms', 'p99, ms'],
      rows,
    },
  ];
}
