import { startPostgres, startRedis } from '../support/databases.mjs';
import { ask, moveToCore1, startNode, stop } from '../support/processes.mjs';
import { L1, safe, transaction } from '../variants.mjs';
import { middle } from './load.mjs';

/** How often the service sends a callback (docs/service.md, 8). */
const attempts = 4;

/**
 * 5 000 callbacks at one moment, and 2 000 copies of one. Routes that do less take turns with the package: what they are
 * blocked for is the price of 5 000 connections on Node.
 */
export async function measureBursts({ quick }) {
  const [rounds, count, copies] = quick ? [1, 1_000, 400] : [3, 5_000, 2_000];
  const postgres = await startPostgres();
  moveToCore1();
  const redis = await startRedis();
  const redisEnv = { REDIS_PORT: String(redis.port) };
  const byHand = (client) => ({ file: 'by-hand.mjs', args: ['safe', client], env: redisEnv });
  const router = (client) => ({ file: 'package.mjs', args: ['router', client], env: redisEnv });
  const onPostgres = (kind) => ({
    file: 'postgres.mjs',
    args: [kind],
    env: { POSTGRES_URL: postgres.url, POOL: '20' },
  });
  const routes = [
    { name: 'node:http, empty listener', server: { file: 'empty.mjs', args: ['node'] } },
    { name: L1, server: { file: 'empty.mjs', args: ['express'] } },
    { name: safe('ioredis'), server: byHand('ioredis') },
    { name: 'router: ioredis', server: router('ioredis'), own: true },
    { name: safe('node-redis'), server: byHand('node-redis') },
    { name: 'router: node-redis', server: router('node-redis'), own: true },
    { name: `${transaction('same row')}, pool of 20`, server: onPostgres('same row') },
    { name: 'router: Postgres, pool of 20', server: onPostgres('router'), own: true },
  ];
  const herds = [];
  const bursts = routes.map(() => []);
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, { server }] of routes.entries()) {
        bursts[index].push(await sendBurst(server, count));
        await redis.command('FLUSHALL', 'SYNC');
      }
    }
    for (const { name, server, own } of routes) if (own) herds.push([name, ...(await sendHerd(server, copies))]);
  } finally {
    await redis.stop();
    await postgres.stop();
  }
  return [
    {
      title: `Burst: ${count.toLocaleString('en')} callbacks at one moment, on as many connections`,
      columns: [
        'route',
        'acknowledged at the first attempt',
        `after up to ${attempts} attempts`,
        'last response, ms',
        'longest block of the event loop, ms',
      ],
      rows: routes.map(({ name }, index) => [
        name,
        Math.min(...bursts[index].map(({ first }) => first)),
        Math.min(...bursts[index].map(({ total }) => total)),
        middle(bursts[index], 'tookMs', 0),
        middle(bursts[index], 'blockedMs', 0),
      ]),
      note: `The fewest acknowledged and the median times of ${rounds} rounds. A callback that was not acknowledged is sent again when all have a response: sooner than the service does.`,
    },
    {
      title: `Herd: ${copies.toLocaleString('en')} copies of one callback at one moment, handler of 200 ms`,
      columns: ['route', 'handled', 'acknowledged', 'last response, ms', 'longest block of the event loop, ms'],
      rows: herds,
    },
  ];
}

/** Starts the server, has V8 compile it, and runs `send` with `{ burst, longestBlockMs }`. */
async function withServer({ file, args, env }, send) {
  const server = await startNode(`servers/${file}`, args, { env, core: 0 });
  const generator = await startNode('burst-generator.mjs');
  try {
    const burst = (task) => ask(generator, { port: server.ready, ...task });
    for (let warmUp = 0; warmUp < 4; warmUp += 1) await burst({ count: 500 });
    await ask(server, 'loop');
    return await send({ burst, longestBlockMs: () => ask(server, 'loop') });
  } finally {
    await stop(generator);
    await stop(server);
  }
}

async function sendBurst(server, count) {
  return withServer(server, async ({ burst, longestBlockMs }) => {
    let { results, tookMs } = await burst({ count });
    const blockedMs = await longestBlockMs();
    const acknowledged = (list) => list.filter(({ status }) => status === 200).length;
    const first = acknowledged(results);
    let total = first;
    for (let attempt = 2; attempt <= attempts && total < count; attempt += 1) {
      const again = results.filter(({ status }) => status !== 200).map(({ id }) => id);
      ({ results } = await burst({ ids: again }));
      total += acknowledged(results);
    }
    return { first, total, tookMs, blockedMs };
  });
}

async function sendHerd({ file, args, env }, copies) {
  const slow = { file, args, env: { ...env, HANDLER_MS: '200' } };
  return withServer(slow, async ({ burst, longestBlockMs }) => {
    const id = crypto.randomUUID();
    const { results, tookMs } = await burst({ ids: Array.from({ length: copies }, () => id) });
    const blockedMs = await longestBlockMs();
    const handled = results.filter(({ outcome }) => outcome === 'processed').length;
    const acknowledged = results.filter(({ status }) => status === 200).length;
    return [handled, acknowledged, tookMs.toFixed(0), blockedMs.toFixed(0)];
  });
}
