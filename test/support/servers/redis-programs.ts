import { basename, dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { findOnPath, findUnpacked, installOnly } from './programs.js';

export const host = '127.0.0.1';

const howToGetOne =
  'The tests need a redis-server or valkey-server on the PATH or in REDIS_SERVER_BIN, and this machine has none: ' +
  '`apt install redis-server` on Debian, `brew install redis` on macOS, `apk add redis` on Alpine; on Windows run them in WSL.';

/** `redis-tools` has the server's file, which checks a database if it is started by its own name. */
const debianRedis = {
  name: 'redis-server',
  path: 'usr/bin/redis-check-rdb',
  others: ['usr/bin/redis-cli'],
  download: [...installOnly, 'redis-tools'],
  megabytes: 6,
};

/** Connects once, for `use`, and does not reconnect. */
export async function once<T>(port: number, use: (client: Redis) => Promise<T>): Promise<T> {
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

/** Resolves with the path of a server's binary. Rejects with how to get one. */
export function findBinary(): Promise<string> {
  return (found ??= searchBinary());
}

async function searchBinary(): Promise<string> {
  const { REDIS_SERVER_BIN } = process.env;
  if (REDIS_SERVER_BIN) return REDIS_SERVER_BIN;
  const binary = (await findOnPath('redis-server', 'valkey-server')) ?? (await findUnpacked(debianRedis));
  if (binary === undefined) throw new Error(howToGetOne);
  return binary;
}

/** Resolves with the path of the command line of the server, which is installed together with it. */
export async function findCli(): Promise<string> {
  const binary = await findBinary();
  const name = basename(binary);
  return join(dirname(binary), name === 'run' ? 'redis-cli' : name.replace('server', 'cli'));
}
