// Compares servers by the ratios of their throughput, side by side in one run. README.md tells how and why.
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startPostgres, startRedis } from './support/databases.mjs';
import { ask, canPin, moveToCore1, startNode, stop } from './support/processes.mjs';
import { median, medianOf } from './support/statistics.mjs';

export const L1 = 'express.json(), empty route';
export const powertools = 'powertools: node-redis';
export const safe = (client) => `by hand, safe: ${client}`;
export const sameRow = 'by hand, same row: Postgres';

const own = (edge, client, byHand) => ({
  name: `${edge}: ${client ?? 'memory'}`,
  file: 'package.mjs',
  args: [edge, ...(client === undefined ? [] : [client])],
  own: true,
  byHand,
});
const rival = (name) => ({
  name: `${name}: node-redis`,
  file: 'rivals.mjs',
  args: [name],
  byHand: safe('node-redis'),
  powertools,
});
const onRedis = (client) => [
  { name: safe(client), file: 'by-hand.mjs', args: ['safe', client] },
  own('router', client, safe(client)),
  own('listener', client, safe(client)),
];
const postgres = (name, kind) => ({ name, file: 'postgres.mjs', args: [kind], byHand: sameRow });

/** What is compared. `byHand` and `powertools` name what a server is divided by, beside the empty route. */
const servers = [
  { name: L1, file: 'empty.mjs', args: ['express'] },
  { name: 'node:http, empty listener', file: 'empty.mjs', args: ['node'] },
  own('router'),
  own('listener'),
  ...onRedis('ioredis'),
  ...onRedis('node-redis').map((server) => ({ ...server, powertools })),
  rival('powertools'),
  rival('express-idempotency'),
  rival('node-idempotency'),
  postgres(sameRow, 'same row'),
  { ...postgres('router: Postgres', 'router'), own: true },
  { ...postgres('listener: Postgres', 'listener'), own: true },
];

/** How many requests V8 needs to compile what it will, for each server. */
const warmUpRequests = 30_000;

/**
 * Measures the servers whose names match `only`. Resolves with a row for each: the medians of its rounds, and its ratios
 * to L1, the route by hand and powertools as median, least and most.
 */
export async function measureSockets({ rounds, seconds, connections, only = /(?:)/ }) {
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
        sent += (await measureLoad(generator, server, connections, 500 * seconds)).count;
      }
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const { name, server } of running) {
        results.get(name).push(await measureLoad(generator, server, connections, 1_000 * seconds));
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
async function measureLoad(generator, server, connections, durationMs) {
  const before = await ask(server, 'cpu');
  const result = await ask(generator, { port: server.ready, connections, durationMs });
  return { ...result, cpuMicros: ((await ask(server, 'cpu')) - before) / result.count };
}

function toRow({ name, own: isOwn = false, byHand, powertools: rivalName }, results) {
  const measured = results.get(name);
  const toRatio = (base) => {
    if (base === undefined || base === name || !results.has(base)) return undefined;
    const ratios = measured.map(({ perSecond }, round) => perSecond / results.get(base)[round].perSecond);
    return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
  };
  const fields = ['perSecond', 'cpuMicros', 'p50Ms', 'p99Ms', 'generatorBusy'];
  return {
    name,
    own: isOwn,
    ...Object.fromEntries(fields.map((field) => [field, medianOf(measured, field)])),
    toL1: toRatio(L1),
    toByHand: toRatio(byHand),
    toPowertools: toRatio(rivalName),
  };
}

export const toRange = (ratio) =>
  ratio === undefined ? '' : `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)})`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      connections: { type: 'string', default: '32' },
      only: { type: 'string', default: '' },
    },
  });
  console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0].model}`);
  console.log(canPin ? 'Servers on core 0; load and Redis on core 1' : 'Not pinned');
  const rows = await measureSockets({
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    connections: Number(values.connections),
    only: new RegExp(values.only),
  });
  console.table(
    Object.fromEntries(
      rows.map(({ name, perSecond, cpuMicros, p50Ms, p99Ms, generatorBusy, toL1, toByHand, toPowertools }) => [
        name,
        {
          'per s': Math.round(perSecond),
          'cpu µs': Math.round(cpuMicros),
          'p50 ms': p50Ms.toFixed(2),
          'p99 ms': p99Ms.toFixed(2),
          load: `${(100 * generatorBusy).toFixed(0)} %`,
          '/ L1': toRange(toL1),
          '/ by hand': toRange(toByHand),
          '/ powertools': toRange(toPowertools),
        },
      ]),
    ),
  );
  // Clients of the tests' servers may hold the process.
  process.exit();
}
