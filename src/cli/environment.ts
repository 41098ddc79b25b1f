import { createRequire } from 'node:module';
import { transferClient, type TransferClient } from '../client/index.js';
import type { CallbackStore, TransferCallbackReceiver } from '../node.js';
import { postgresStore, type PgPool } from '../stores/postgres.js';
import { redisStore, type IoredisClient, type NodeRedisClient } from '../stores/redis.js';
import { exampleFile, toSentence, UsageError } from './arguments.js';
import { messageOf } from './terminal.js';

/** What the commands use of the merchant's app. */
export interface App {
  readonly client?: TransferClient;
  /** The address of the service, if it is known. */
  readonly serviceName?: string;
  readonly receiver?: TransferCallbackReceiver;
  readonly store?: Required<Pick<CallbackStore, 'read'>>;
  /** The kind and the address of the store, if they are known. */
  readonly storeName?: string;
}

const variables: Readonly<Record<string, string>> = {
  baseUrl: 'TRANSFER_SERVICE_URL',
  apiKey: 'TRANSFER_API_KEY',
  apiSecret: 'TRANSFER_API_SECRET',
};

/** How long connecting to a store may take, and each of its commands. */
export const storeTimeoutMs = 10_000;

/** Finds the service and the store that the environment names. Throws UsageError. */
export function findInEnvironment(): App {
  const { TRANSFER_SERVICE_URL: url } = process.env;
  const client = url ? makeClient(url) : undefined;
  return { ...(client && { client, serviceName: new URL(String(url)).origin }), ...findStore() };
}

function makeClient(baseUrl: string): TransferClient {
  const { TRANSFER_API_KEY: apiKey, TRANSFER_API_SECRET: apiSecret } = process.env;
  if (!apiKey || !apiSecret) {
    throw new UsageError('Expected TRANSFER_API_KEY and TRANSFER_API_SECRET in the environment, beside the service.');
  }
  try {
    return transferClient({ baseUrl, apiKey, apiSecret });
  } catch (error) {
    throw new UsageError(toSentence(error).replace(/`(\w+)`/g, (_, name: string) => variables[name] ?? name));
  }
}

type FoundStore = Pick<App, 'store' | 'storeName'>;

function findStore(): FoundStore {
  const { REDIS_URL, DATABASE_URL, PGHOST, PGDATABASE } = process.env;
  const redis = parseUrl(REDIS_URL, /^rediss?:$/);
  const postgres = parseUrl(DATABASE_URL, /^postgres(?:ql)?:$/);
  const hasPg = postgres !== undefined || Boolean(PGHOST ?? PGDATABASE);
  if (redis !== undefined && hasPg) {
    throw new UsageError(`REDIS_URL and DATABASE_URL or PGHOST are set: which has the records?\n${exampleFile}`);
  }
  if (redis !== undefined) return openRedis(redis);
  if (hasPg) return openPostgres(postgres);
  // The values are not shown: they may hold a password.
  if (REDIS_URL) throw unfit('REDIS_URL', 'redis:// or rediss:// URL');
  if (DATABASE_URL) throw unfit('DATABASE_URL', 'postgres:// URL');
  return {};
}

function unfit(variable: string, expected: string): UsageError {
  const password = 'In a password, # and / are written as %23 and %2F.';
  return new UsageError(`${variable} is set, but is no ${expected}. ${password}\n${exampleFile}`);
}

function parseUrl(value: string | undefined, protocol: RegExp): URL | undefined {
  const url = value !== undefined && URL.canParse(value) ? new URL(value) : undefined;
  return url !== undefined && protocol.test(url.protocol) ? url : undefined;
}

/** The store of a connection that is opened when a record is read first. */
function lazyStore(storeName: string, open: () => Promise<NonNullable<App['store']>>): FoundStore {
  let opened: ReturnType<typeof open> | undefined;
  return { storeName, store: { read: async (id) => (await (opened ??= open())).read(id) } };
}

/** What is used of pg. */
interface PgDriver {
  Pool: new (config: object) => PgPool;
}

/** Without a URL, pg reads PGHOST and the like. */
function openPostgres(url: URL | undefined): FoundStore {
  const host = url === undefined ? (process.env.PGHOST ?? 'localhost') : url.host;
  return lazyStore(`PostgreSQL at ${host}`, () => {
    // pg warns of what `sslmode=require` will mean one day, in nine lines before the report.
    process.removeAllListeners('warning');
    const { Pool } = loadDriver(['pg']).driver as PgDriver;
    const pool = new Pool({
      connectionString: url?.href,
      application_name: 'transfer-callbacks',
      max: 1,
      connectionTimeoutMillis: storeTimeoutMs,
      query_timeout: storeTimeoutMs,
    });
    return Promise.resolve(postgresStore(pool));
  });
}

interface Connectable {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
}

/** What is used of ioredis and iovalkey. */
interface IoredisDriver {
  readonly Redis: new (url: string, options: object) => IoredisClient & Connectable;
}

/** What is used of node-redis. */
interface NodeRedisDriver {
  readonly createClient: (options: object) => NodeRedisClient & Connectable;
}

function openRedis(url: URL): FoundStore {
  const database = url.pathname.slice(1);
  if (!/^\d*$/.test(database)) throw unfit('REDIS_URL', 'redis:// or rediss:// URL that ends in a database number');
  return lazyStore(`Redis at ${url.host}`, async () => {
    const client = makeRedis(url);
    let reason: unknown;
    // `connect` of ioredis rejects with "Connection is closed", and does not reject for a database that does not exist:
    // the listener gets the reason.
    client.on('error', (error) => {
      reason ??= error;
    });
    await client.connect().catch((error: unknown) => {
      reason ??= error;
    });
    if (reason !== undefined) throw reason as Error;
    return redisStore(client);
  });
}

function makeRedis({ href }: URL): (IoredisClient | NodeRedisClient) & Connectable {
  const { name, driver } = loadDriver(['ioredis', 'iovalkey', 'redis']);
  if (name === 'redis') {
    return (driver as NodeRedisDriver).createClient({ url: href, socket: { reconnectStrategy: false } });
  }
  return new (driver as IoredisDriver).Redis(href, { lazyConnect: true, retryStrategy: () => null });
}

/** Loads the first of these packages that the app in the working directory has. */
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
  if (name === undefined) {
    throw new Error(`none of ${names.join(', ')} is installed in ${directory}. Run this in the folder of your app.`);
  }
  try {
    return { name, driver: requireFromApp(name) };
  } catch (error) {
    throw new Error(`${name} cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
}
