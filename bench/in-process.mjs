// Processor time for each delivery, without sockets to the client. README.md tells how it is measured.
import { basename, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from './support/databases.mjs';
import { ask, moveToCore1, startNode, stop } from './support/processes.mjs';
import { percentile } from './support/statistics.mjs';
import { L1, safe, variants as overSockets } from './variants.mjs';

const floor = 'floor: reads, schema, Map, handler';
const listener = 'listener: memory';

/** What is measured on memory. `own` is measured once for each build of the package; `layer` only where asked for. */
const onMemory = [
  { name: L1, file: 'empty.mjs', args: ['express'] },
  { name: 'node:http, empty listener', file: 'empty.mjs', args: ['node'] },
  { name: floor, file: 'layers.mjs', args: ['map'], own: true },
  { name: 'floor + memory store', file: 'layers.mjs', args: ['store'], own: true, layer: true },
  { name: 'floor + receive', file: 'layers.mjs', args: ['receive'], own: true, layer: true },
  { name: listener, file: 'package.mjs', args: ['listener'], own: true },
  { name: 'floor behind Router()', file: 'layers.mjs', args: ['express-map'], own: true, layer: true },
  { name: 'router: memory', file: 'package.mjs', args: ['router'], own: true },
];
const onRedis = overSockets.filter(({ name, client, own }) => client && (own || /, safe:|powertools/.test(name)));

/** Starts the servers of the variants that a run measures, and their Redis. `end` stops them. */
export async function startServers({ packages, layers, redis: withRedis, only = /(?:)/ }) {
  const all = [...onMemory.filter(({ layer }) => layers || !layer), ...(withRedis ? onRedis : [])];
  const chosen = all.filter(({ name }) => only.test(name));
  moveToCore1();
  const redis = withRedis ? await startRedis() : undefined;
  const rows = [];
  const end = async () => {
    for (const { server } of rows) await stop(server);
    await redis?.stop();
  };
  try {
    for (const { name, file, args, own, client } of chosen) {
      for (const directory of own ? packages : packages.slice(0, 1)) {
        const env = { PACKAGE: pathToFileURL(resolve(directory, 'dist/index.js')).href, IN_PROCESS: file };
        if (client) env.REDIS_PORT = String(redis.port);
        const server = await startNode('in-process-server.mjs', args, { env, core: 0 });
        const build = own && packages.length > 1 ? basename(resolve(directory)) : undefined;
        rows.push({ name, build, client, server, micros: [] });
      }
    }
  } catch (error) {
    await end();
    throw error;
  }
  return { rows, redis, end };
}

/** Warms the servers up, and lets each take its turn in every round. Fills the `micros` of the rows. */
export async function measureRounds({ rows, redis }, { rounds, requests, warmUpRequests }) {
  for (const { server } of rows) await ask(server, { count: warmUpRequests });
  await redis?.command('FLUSHALL', 'SYNC');
  for (let round = 0; round < rounds; round += 1) {
    for (const { server, micros } of rows) micros.push(await ask(server, { count: requests }));
    await redis?.command('FLUSHALL', 'SYNC');
  }
}

/** The 15th percentile of the rounds, since other work only adds to it. */
export const toCpuMicros = (micros) => percentile(micros, 0.15);

/** The row that a row is divided by: L1, or the route by hand on the same client. */
export function findBase(rows, { client }) {
  return rows.find(({ name }) => name === (client ? safe(client) : L1));
}

/**
 * Measures each variant in its own process. Resolves with rows of the microseconds of processor time per request,
 * and their ratio to their base.
 */
export async function measureInProcess({ rounds, requests, warmUpRequests, ...options }) {
  const started = await startServers(options);
  try {
    await measureRounds(started, { rounds, requests, warmUpRequests });
  } finally {
    await started.end();
  }
  const measured = started.rows.map(({ micros, server: _, ...row }) => ({ ...row, cpuMicros: toCpuMicros(micros) }));
  return measured.map((row) => ({ ...row, ratio: findBase(measured, row).cpuMicros / row.cpuMicros }));
}

/** What the package adds to the floor, for each build. */
export function ownShares(rows) {
  const find = (name, build) => rows.find((row) => row.name === name && row.build === build);
  return rows
    .filter(({ name }) => name === listener)
    .map(({ build, cpuMicros }) => ({ build, cpuMicros: cpuMicros - find(floor, build).cpuMicros }));
}

function print(rows) {
  const title = ({ name, build }) => (build === undefined ? name : `${name} (${build})`);
  const width = Math.max(...rows.map((row) => title(row).length)) + 2;
  for (const row of rows) {
    const base = row.client ? 'by hand' : 'L1';
    console.log(
      `${title(row).padEnd(width)}${row.cpuMicros.toFixed(1).padStart(6)} µs   / ${base} ${row.ratio.toFixed(2)}`,
    );
  }
  for (const { build, cpuMicros } of ownShares(rows)) {
    console.log(`own share of the listener${build === undefined ? '' : ` (${build})`}: ${cpuMicros.toFixed(1)} µs`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '25' },
      requests: { type: 'string', default: '9600' },
      'warm-up': { type: 'string', default: '115200' },
      package: { type: 'string', multiple: true, default: [fileURLToPath(new URL('..', import.meta.url))] },
      layers: { type: 'boolean', default: false },
      redis: { type: 'boolean', default: false },
    },
  });
  const { rounds, requests } = values;
  console.log(`Node ${process.version}, ${rounds} rounds of ${requests} requests, 15th percentile of processor time`);
  print(
    await measureInProcess({
      rounds: Number(rounds),
      requests: Number(requests),
      warmUpRequests: Number(values['warm-up']),
      packages: values.package,
      layers: values.layers,
      redis: values.redis,
    }),
  );
  // Clients of the tests' servers may hold the process.
  process.exit();
}
