import { basename, dirname, join } from 'node:path';
import { Redis } from 'ioredis';
import { findNeeded, installOnly } from './programs.js';

export const host = '127.0.0.1';

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
      download: [...installOnly, 'redis-tools'],
      megabytes: 6,
    },
  }));

/** Resolves with the path of the command line of the server, which is installed together with it. */
export async function findCli(): Promise<string> {
  const binary = await findBinary();
  const name = basename(binary);
  return join(dirname(binary), name === 'run' ? 'redis-cli' : name.replace('server', 'cli'));
}
