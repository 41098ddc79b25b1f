import { spawn, type ChildProcess } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { hasEnded, kill, tied } from './child.js';
import { patienceMs } from './patience.js';

export const host = '127.0.0.1';

const howToGetOne =
  'The tests need a redis-server or valkey-server on the PATH: ' +
  'install Redis (apt install redis-server, brew install redis) or Valkey, or set REDIS_SERVER_BIN.';

/** Starts a server on this port, and waits until it replies. */
export async function launch(
  binary: string,
  port: number,
  args: readonly string[],
): Promise<ChildProcess | 'port taken'> {
  const child = tied(spawn(binary, ['--port', String(port), ...args], { stdio: ['ignore', 'pipe', 'pipe'] }));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (printed += text));
  }
  child.on('error', (error) => (printed += `${error.message}. ${howToGetOne}`));
  const giveUpAt = performance.now() + patienceMs;
  while (!(await isReady(port, child))) {
    if (hasEnded(child)) {
      if (/address already in use/i.test(printed)) return 'port taken';
      throw new Error(`${binary} did not start: ${printed}`);
    }
    if (performance.now() > giveUpAt) {
      await kill(child);
      throw new Error(`${binary} did not reply within ${patienceMs} ms: ${printed}`);
    }
    await pause(10);
  }
  return child;
}

/** Whether it is this child that replies: another server may have taken the port first. */
async function isReady(port: number, { pid }: ChildProcess): Promise<boolean> {
  try {
    return await once(port, async (client) => {
      await client.ping();
      return new RegExp(`^process_id:${pid}\\r?$`, 'm').test(await client.info('server'));
    });
  } catch {
    return false;
  }
}

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
  const { REDIS_SERVER_BIN, PATH = '' } = process.env;
  if (REDIS_SERVER_BIN) return REDIS_SERVER_BIN;
  for (const name of ['redis-server', 'valkey-server']) {
    for (const directory of PATH.split(delimiter)) {
      const path = join(directory, name);
      if (await isExecutable(path)) return path;
    }
  }
  throw new Error(howToGetOne);
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
