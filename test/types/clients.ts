// The clients that redisStore takes by their shape are those that people have.
import type { Cluster, Redis } from 'ioredis';
import type { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import type { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { RESP_TYPES, type createClient, type createClientPool, type createCluster, type createSentinel } from 'redis';
import { expectTypeOf } from 'vitest';
import { redisStore, type CallbackStore, type IoredisClient } from 'transfer-callbacks';
import type { NodeRedisClient } from '../../src/stores/redis/store.js';

expectTypeOf<Redis>().toExtend<IoredisClient>();
expectTypeOf<Cluster>().toExtend<IoredisClient>();
expectTypeOf<Redis5>().toExtend<IoredisClient>();
expectTypeOf<Cluster5>().toExtend<IoredisClient>();
expectTypeOf<Valkey>().toExtend<IoredisClient>();
expectTypeOf<ValkeyCluster>().toExtend<IoredisClient>();
expectTypeOf<ReturnType<typeof createClient>>().toExtend<NodeRedisClient>();
expectTypeOf<ReturnType<typeof createCluster>>().toExtend<NodeRedisClient>();
expectTypeOf<ReturnType<typeof createClientPool>>().toExtend<NodeRedisClient>();
expectTypeOf<ReturnType<typeof createSentinel>>().toExtend<NodeRedisClient>();

/** As Upstash's client: `set` takes other options, `eval` takes arrays. */
interface OtherClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string, options: { px: number; nx?: true }): Promise<unknown>;
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
}
expectTypeOf<OtherClient>().not.toExtend<NodeRedisClient>();
expectTypeOf<OtherClient>().not.toExtend<IoredisClient>();

// As they are written: the argument, not only the type.
declare const redis: Redis;
declare const valkeyCluster: ValkeyCluster;
declare const nodeRedis: ReturnType<typeof createClient>;
declare const either: Redis | Cluster;
expectTypeOf(redisStore(redis, { prefix: 'payouts:' })).toEqualTypeOf<Required<Omit<CallbackStore, 'check'>>>();
redisStore(valkeyCluster);
redisStore(nodeRedis);
redisStore(either);
// Set to reply with other types.
redisStore(nodeRedis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String }));

// @ts-expect-error -- a Map is no client.
redisStore(new Map());
// @ts-expect-error -- a pool of pg.
redisStore({ query: () => Promise.resolve({ rows: [] }), connect: () => Promise.resolve() });
// @ts-expect-error -- an address.
redisStore('redis://127.0.0.1:6379');
// @ts-expect-error -- a client that is still being connected.
redisStore(Promise.resolve(redis));
// @ts-expect-error -- the callbacks of node_redis 3 in place of promises.
redisStore({ call: (command: string, reply: (error: Error | null, response: unknown) => void) => [command, reply] });
// @ts-expect-error -- nothing.
redisStore();
// @ts-expect-error -- misspelt.
redisStore(redis, { keyPrefix: 'payouts:' });
