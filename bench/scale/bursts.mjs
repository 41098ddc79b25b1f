import { startPostgres, startRedis } from '../support/databases.mjs';
import { ask, moveToCore1, startNode, stop } from '../support/processes.mjs';

/** How often the service sends a callback (docs/service.md, 8). */
const attempts = 4;

/** 5 000 callbacks at one moment, and 2 000 copies of one. */
export async function measureBursts({ quick }) {
  const count = quick ? 1_000 : 5_000;
  const copies = quick ? 400 : 2_000;
  const postgres = await startPostgres();
  moveToCore1();
  const redis = await startRedis();
  const onRedis = { file: 'package.mjs', args: ['router', 'ioredis'], env: { REDIS_PORT: String(redis.port) } };
  const onPostgres = { file: 'postgres.mjs', args: ['router'], env: { POSTGRES_URL: postgres.url, POOL: '20' } };
  const bursts = [];
  const herds = [];
  try {
    for (const [name, server] of [
      ['Redis, ioredis', onRedis],
      ['Redis, node-redis', { ...onRedis, args: ['router', 'node-redis'] }],
      ['PostgreSQL, pool of 20', onPostgres],
    ]) {
      bursts.push([name, ...(await sendBurst(server, count))]);
      herds.push([name, ...(await sendHerd(server, copies))]);
    }
  } finally {
    await redis.stop();
    await postgres.stop();
  }
  return [
    {
      title: `Burst: ${count.toLocaleString('en')} callbacks at one moment, on as many connections`,
      columns: [
        'store',
        'acknowledged at the first attempt',
        `after up to ${attempts} attempts`,
        'last response, ms',
        'longest block of the event loop, ms',
      ],
      rows: bursts,
      note: 'A callback that was not acknowledged is sent again when all have been answered: sooner than the service does.',
    },
    {
      title: `Herd: ${copies.toLocaleString('en')} copies of one callback at one moment, handler of 200 ms`,
      columns: ['store', 'handled', 'acknowledged', 'last response, ms', 'longest block of the event loop, ms'],
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
    return [first, total, tookMs.toFixed(0), blockedMs.toFixed(0)];
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
