import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import {
  createClient,
  createCluster,
  RESP_TYPES,
  type RedisClientOptions,
  type RedisFunctions,
  type RedisModules,
  type RedisScripts,
  type RespVersions,
} from 'redis';
import type { IoredisClient } from 'transfer-callbacks';
import type { NodeRedisClient } from '../../../src/stores/redis/store.js';
import type { RedisCluster } from './redis.js';

/** A client, and how to close its connections. */
export interface Connected {
  readonly client: IoredisClient | NodeRedisClient;
  readonly close: () => unknown;
}

/** What the clients of the ioredis family have in common. */
export interface Ioredis extends IoredisClient {
  readonly status: string;
  on(event: 'error', listener: (error: Error) => void): unknown;
  ping(): Promise<string>;
  disconnect(): void;
}

interface IoredisOptions {
  commandTimeout?: number;
  enableAutoPipelining?: boolean;
  keyPrefix?: string;
  maxRetriesPerRequest?: number | null;
  password?: string;
  retryStrategy?: () => number;
  username?: string;
}

export const ioredisFamily: Record<string, (port: number, options?: IoredisOptions) => Ioredis> = {
  'ioredis 6': (port, options = {}) => new Redis(port, '127.0.0.1', options),
  'ioredis 5': (port, options = {}) => new Redis5(port, '127.0.0.1', options),
  iovalkey: (port, options = {}) => new Valkey(port, '127.0.0.1', options),
};

/**
 * Every client of one server that is promised to work, set up in every way that the store can notice but a key prefix.
 */
export const clientsOfOneServer: Record<string, (port: number) => Connected | Promise<Connected>> = {
  ...Object.fromEntries(
    Object.entries(ioredisFamily).flatMap(([name, connect]) => [
      [name, (port: number) => closing(connect(port))],
      [`${name} with auto-pipelining`, (port: number) => closing(connect(port, { enableAutoPipelining: true }))],
    ]),
  ),
  'node-redis': (port) => connectNodeRedis(port),
  'node-redis with RESP 2': (port) => connectNodeRedis(port, { RESP: 2 }),
  'node-redis with Buffers for strings and strings for numbers': (port) =>
    connectNodeRedis(port, {
      commandOptions: {
        typeMapping: {
          [RESP_TYPES.SIMPLE_STRING]: Buffer,
          [RESP_TYPES.BLOB_STRING]: Buffer,
          [RESP_TYPES.NUMBER]: String,
        },
      },
    }),
};

/** Every client of a Cluster that is promised to work. */
export const clientsOfACluster: Record<
  string,
  (cluster: RedisCluster, login?: { username?: string; password?: string }) => Connected | Promise<Connected>
> = {
  'ioredis 6': ({ nodes }, redisOptions = {}) => closing(new Cluster([...nodes], { redisOptions })),
  'ioredis 6 with auto-pipelining': ({ nodes }, redisOptions = {}) =>
    closing(new Cluster([...nodes], { redisOptions, enableAutoPipelining: true })),
  'ioredis 5': ({ nodes }, redisOptions = {}) => closing(new Cluster5([...nodes], { redisOptions })),
  iovalkey: ({ nodes }, redisOptions = {}) => closing(new ValkeyCluster([...nodes], { redisOptions })),
  'node-redis': async ({ nodes }, defaults = {}) => {
    const rootNodes = nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` }));
    const client = createCluster({ rootNodes, defaults });
    await client.connect();
    return { client, close: () => client.close() };
  },
};

export const closing = (client: IoredisClient & { disconnect(): void }): Connected => ({
  client,
  close: client.disconnect.bind(client),
});

type NodeRedisOptions = RedisClientOptions<RedisModules, RedisFunctions, RedisScripts, RespVersions>;

/** Connects a client that reports its errors through its commands only. */
export async function connectNodeRedis(port: number, options: NodeRedisOptions = {}) {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, ...options });
  client.on('error', () => undefined);
  await client.connect();
  return { client, close: client.destroy.bind(client) };
}
