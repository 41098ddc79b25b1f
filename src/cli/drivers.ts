import { createRequire } from 'node:module';
import { postgresStore, type PgPool, type PostgresStoreOptions } from '../stores/postgres.js';
import { redisStore, type IoredisClient, type NodeRedisClient, type RedisStoreOptions } from '../stores/redis.js';
import { UsageError } from './arguments.js';

/** A store, and what closes its connection. */
export interface OpenStore {
  readonly store: Pick<ReturnType<typeof redisStore>, 'read'>;
  readonly close: () => unknown;
}

/** How long connecting may take, and each command. */
export const driverTimeoutMs = 5_000;

interface RedisConnection {
  on(event: 'error', listener: () => void): unknown;
  connect(): Promise<unknown>;
}

/** What is used of ioredis and iovalkey. */
interface IoredisDriver {
  Redis: new (url: string, options: object) => IoredisClient & RedisConnection & { disconnect(): void };
}

/** What is used of node-redis. */
interface NodeRedisDriver {
  readonly createClient: (options: object) => NodeRedisClient & RedisConnection & { destroy(): void };
}

/** What is used of pg. */
interface PgDriver {
  Pool: new (config: object) => PgPool & { end(): Promise<void> };
}

/** Returns what connects to Redis with the app's own client. Throws UsageError if the app has none, or the options are wrong. */
export function openRedis(url: string, options: RedisStoreOptions): () => Promise<OpenStore> {
  const { name, driver } = loadDriver(['ioredis', 'iovalkey', 'redis']);
  return name === 'redis'
    ? () => connectNodeRedis(driver as NodeRedisDriver, url, options)
    : () => connectIoredis(driver as IoredisDriver, url, options);
}

/** The same for PostgreSQL, with pg. */
export function openPostgres(url: string, options: PostgresStoreOptions): () => Promise<OpenStore> {
  const { Pool } = loadDriver(['pg']).driver as PgDriver;
  const pool = new Pool({
    connectionString: url,
    application_name: 'transfer-callbacks',
    max: 1,
    connectionTimeoutMillis: driverTimeoutMs,
    query_timeout: driverTimeoutMs,
  });
  const store = postgresStore(pool, options);
  return () => Promise.resolve({ store, close: () => pool.end() });
}

async function connectIoredis({ Redis }: IoredisDriver, url: string, options: RedisStoreOptions): Promise<OpenStore> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: driverTimeoutMs,
  });
  let reason: unknown;
  // `connect` rejects with «Connection is closed», and the listener gets the reason.
  client.on('error', (error?: unknown) => {
    reason ??= error;
  });
  try {
    await client.connect();
  } catch (error) {
    throw reason ?? error;
  }
  return {
    store: redisStore(client, options),
    close: () => {
      client.disconnect();
    },
  };
}

async function connectNodeRedis(
  { createClient }: NodeRedisDriver,
  url: string,
  options: RedisStoreOptions,
): Promise<OpenStore> {
  const client = createClient({ url, socket: { reconnectStrategy: false, connectTimeout: driverTimeoutMs } });
  client.on('error', () => undefined); // `connect` rejects with the same error.
  await client.connect();
  return {
    store: redisStore(client, options),
    close: () => {
      client.destroy();
    },
  };
}

/** Loads the first of these packages that the app in the working directory has. Throws UsageError. */
function loadDriver(names: readonly [string, ...string[]]): { name: string; driver: unknown } {
  const directory = process.cwd();
  const requireFromApp = createRequire(`${directory}/`);
  const name = names.find((each) => {
    try {
      return requireFromApp.resolve(each) !== '';
    } catch {
      return false;
    }
  });
  if (name !== undefined) return { name, driver: requireFromApp(name) };
  throw new UsageError(`Expected ${names.join(', ')} to be installed in ${directory}: run this in your app's folder.`);
}
