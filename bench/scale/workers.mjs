import { startRedis, startRedisCluster } from '../support/databases.mjs';
import { middle, startLoad } from './load.mjs';

const connections = 64;

/**
 * One worker and four, on one Redis and on a Cluster of three masters, all on this machine. They run from the beginning
 * to the end and take turns in each round, because the machine may be slower in one minute than in the next.
 */
export async function measureWorkers({ quick }) {
  const [rounds, durationMs] = quick ? [1, 500] : [9, 2_000];
  const loads = [];
  let redis;
  let cluster;
  const start = async (name, args, env) => {
    for (const workers of [1, 4]) {
      const load = await startLoad({ file: 'package.mjs', args, env, workers });
      loads.push({ name, workers, load, results: [] });
    }
  };
  try {
    redis = await startRedis();
    cluster = await startRedisCluster();
    await start('one', ['listener', 'ioredis'], { REDIS_PORT: String(redis.port) });
    await start('Cluster, three masters', ['listener', 'cluster'], { REDIS_NODES: JSON.stringify(cluster.nodes) });
    if (!quick) for (const { load } of loads) await load.warmUp(connections);
    for (let round = 0; round < rounds; round += 1) {
      for (const { load, results } of loads) results.push(await load.measure(connections, durationMs));
    }
  } finally {
    for (const { load } of loads) await load.end();
    await redis?.stop();
    await cluster?.stop();
  }
  return [
    {
      title: `Workers: listener on ioredis, ${connections} connections; servers, Redis and load share the cores of one machine`,
      columns: ['Redis', 'workers', 'per second', 'Node, µs', 'p50, ms', 'p99, ms'],
      rows: loads.map(({ name, workers, results }) => [
        name,
        workers,
        middle(results, 'perSecond', 0),
        middle(results, 'cpuMicros', 1),
        middle(results, 'p50Ms'),
        middle(results, 'p99Ms'),
      ]),
      note: `Medians of ${rounds} rounds.`,
    },
  ];
}
