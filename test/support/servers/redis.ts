import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { patienceMs } from '../helpers/patience.js';
import { findNeeded } from './programs.js';
import { makeFolder, startServer, type Server } from './server.js';

const host = '127.0.0.1';

/** Connects once, for `use`, and does not reconnect. */
async function once<T>(port: number, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(port, host, {
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    connectTimeout: 5_000,
    commandTimeout: 10_000,
  });
  // The command rejects with the error, too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}

let found: Promise<string> | undefined;

/** Finds a Redis or a Valkey. Each test may start several. */
export const findBinary = () =>
  (found ??= findNeeded({
    what: 'a redis-server or valkey-server on the PATH or in REDIS_SERVER_BIN',
    howToGetIt:
      '`apt install redis-server` on Debian, `brew install redis` on macOS, `apk add redis` on Alpine; on Windows run them in WSL.',
    variable: 'REDIS_SERVER_BIN',
    names: ['redis-server', 'valkey-server'],
    // `redis-tools` has the server's file, which checks a database if it is started by its own name.
    debian: {
      name: 'redis-server',
      path: 'usr/bin/redis-check-rdb',
      others: ['usr/bin/redis-cli'],
      package: 'redis-tools',
      megabytes: 6,
    },
  }));

/** Resolves with the path of the command line of the server, which is installed together with it. */
export async function findCli(): Promise<string> {
  const binary = await findBinary();
  const name = basename(binary);
  return join(dirname(binary), name === 'run' ? 'redis-cli' : name.replace('server', 'cli'));
}

/** A real Redis or Valkey on a free port of the loopback. It restarts empty, unless it was `persistent`. */
export interface RedisServer extends Server {
  readonly url: string;
  /** Sends one command over a new connection. */
  command(name: string, ...args: (string | number)[]): Promise<unknown>;
  /** How often the server has carried out this command since it was started, for all clients. */
  calls(name: string): Promise<number>;
  /** How often the server has replied with an error of this name, such as `MOVED`, since it was started. */
  errors(name: string): Promise<number>;
}

export interface RedisServerOptions {
  /** Whether it keeps every write over a crash. Default false. */
  readonly persistent?: boolean;
  /** More arguments for the command line. */
  readonly args?: readonly string[];
}

export interface RedisCluster {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly servers: readonly RedisServer[];
  stop(): Promise<void>;
}

const slots = 16_384;

/** Starts a server and waits until it replies. */
export async function startRedis({ persistent = false, args = [] }: RedisServerOptions = {}): Promise<RedisServer> {
  const path = await findBinary();
  const folder = await makeFolder();
  const persistence = persistent ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no'];
  const server = await startServer({
    path,
    folder,
    args: (port) => ['--port', String(port), '--bind', host, '--dir', folder, '--save', '', ...persistence, ...args],
    ready: 'Ready to accept connections',
    // With SIGTERM it would write its data first.
    stopSignal: 'SIGKILL',
  });
  const { port } = server;
  return {
    ...server,
    url: `redis://${host}:${port}`,
    command: (name, ...words) => once(port, (client) => client.call(name, ...words)),
    calls: (name) => count(port, 'commandstats', `cmdstat_${name}:calls`),
    errors: (name) => count(port, 'errorstats', `errorstat_${name}:count`),
  };
}

/** Starts three masters that share the slots, and waits until each of them reports a complete cluster. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const args = ['--cluster-enabled', 'yes', '--cluster-announce-ip', host];
  const servers = await Promise.all(Array.from({ length: 3 }, () => startRedis({ args })));
  await formCluster(servers);
  return {
    nodes: servers.map(({ port }) => ({ host, port })),
    servers,
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

async function formCluster(servers: readonly RedisServer[]): Promise<void> {
  const share = Math.ceil(slots / servers.length);
  const all = Array.from({ length: slots }, (_, slot) => slot);
  for (const [index, server] of servers.entries()) {
    await server.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    await server.command('CLUSTER', 'ADDSLOTS', ...all.slice(index * share, (index + 1) * share));
    for (const other of servers.slice(0, index)) await server.command('CLUSTER', 'MEET', host, other.port);
  }
  const giveUpAt = performance.now() + patienceMs;
  for (const server of servers) {
    for (;;) {
      const info = String(await server.command('CLUSTER', 'INFO'));
      if (info.includes('cluster_state:ok')) break;
      if (performance.now() > giveUpAt) throw new Error(`The cluster is not complete:\n${info}`);
      await pause(20);
    }
  }
}

/** Reads a number out of a section of INFO; 0 if it is not there. */
async function count(port: number, section: string, field: string): Promise<number> {
  const stats = await once(port, (client) => client.info(section));
  return Number(new RegExp(`^${field}=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
}
