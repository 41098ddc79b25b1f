// Compares servers by the ratios of their throughput, side by side in one run. README.md tells how and why.
import { startPostgres, startRedis } from './support/databases.mjs';
import { ask, moveToCore1, percentile, startNode, stop } from './support/processes.mjs';

export const L1 = 'express.json(), empty route';
const safe = (client) => `by hand, safe: ${client}`;
const sameRow = 'by hand, same row: Postgres';

const onRedis = (client) => [
  { name: safe(client), file: 'by-hand.mjs', args: ['safe', client] },
  ...['router', 'listener'].map((edge) => ({
    name: `${edge}: ${client}`,
    file: 'package.mjs',
    args: [edge, client],
    own: true,
    byHand: safe(client),
  })),
];
const postgres = (name, kind) => ({ name, file: 'postgres.mjs', args: [kind], byHand: sameRow });

/** What is compared. `byHand` names what a server is divided by, beside the empty route. */
const servers = [
  { name: L1, file: 'empty.mjs', args: ['express'] },
  ...onRedis('ioredis'),
  ...onRedis('node-redis'),
  { name: 'powertools: node-redis', file: 'powertools.mjs', args: [], byHand: safe('node-redis') },
  postgres(sameRow, 'same row'),
  { ...postgres('router: Postgres', 'router'), own: true },
  { ...postgres('listener: Postgres', 'listener'), own: true },
];

const toMedian = (values) => percentile(values, 0.5);

/** How many keep-alive connections there are, with one request in flight on each. */
export const connections = 32;

/** How many requests V8 needs to compile what it will, for each server. */
const warmUpRequests = 30_000;

/**
 * Measures the servers whose names match `only`. Resolves with a row for each: the medians of its rounds, and its ratios
 * to L1 and the route by hand as median, least and most.
 */
export async function measureSockets({ rounds, seconds, only }) {
  const chosen = servers.filter(({ name }) => only.test(name));
  // Started before this process moves, so that PostgreSQL may use both cores, as the server under test does not.
  const database = chosen.some(({ file }) => file === 'postgres.mjs') ? await startPostgres() : undefined;
  moveToCore1();
  const redis = await startRedis();
  const env = { REDIS_PORT: String(redis.port), ...(database && { POSTGRES_URL: database.url }) };
  const processes = [];
  const start = async (...args) => {
    const started = await startNode(...args);
    processes.push(started);
    return started;
  };
  try {
    const generator = await start('generator.mjs');
    const results = new Map();
    const running = [];
    for (const { name, file, args } of chosen) {
      running.push({ name, server: await start(`servers/${file}`, args, { env, core: 0 }) });
      results.set(name, []);
    }
    for (const { server } of running) {
      const giveUpAt = performance.now() + 5_000 * seconds;
      for (let sent = 0; sent < warmUpRequests && performance.now() < giveUpAt;) {
        sent += (await measureLoad(generator, server, 500 * seconds)).count;
      }
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, server } of running) {
        results.get(name).push(await measureLoad(generator, server, 1_000 * seconds));
        await redis.command('FLUSHALL', 'SYNC');
      }
    }
    return chosen.map((server) => toRow(server, results));
  } finally {
    for (const each of processes) await stop(each);
    await redis.stop();
    await database?.stop();
  }
}

/** Resolves with the figures of the generator, and the server's processor time per request. */
async function measureLoad(generator, server, durationMs) {
  const before = await ask(server, 'cpu');
  const result = await ask(generator, { port: server.ready, connections, durationMs });
  return { ...result, cpuMicros: ((await ask(server, 'cpu')) - before) / result.count };
}

function toRow({ name, own = false, byHand }, results) {
  const measured = results.get(name);
  const toRatio = (base) => {
    if (base === undefined || base === name || !results.has(base)) return undefined;
    const ratios = measured.map(({ perSecond }, round) => perSecond / results.get(base)[round].perSecond);
    return { median: toMedian(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
  };
  const fields = ['perSecond', 'cpuMicros', 'p50Ms', 'p99Ms', 'generatorBusy'];
  return {
    name,
    own,
    ...Object.fromEntries(fields.map((field) => [field, toMedian(measured.map((row) => row[field]))])),
    toL1: toRatio(L1),
    toByHand: toRatio(byHand),
  };
}

export const toRange = (ratio) =>
  ratio === undefined ? '' : `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)})`;
