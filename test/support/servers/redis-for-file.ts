import { Redis } from 'ioredis';
import { beforeAll } from 'vitest';
import { startRedis, type RedisServer } from './redis.js';

/** Starts a Redis and a client of it before the first test of the file, and ends both after the last. */
export function startRedisForFile(): { readonly server: RedisServer; readonly redis: Redis } {
  const own = {} as { server: RedisServer; redis: Redis };
  beforeAll(async () => {
    own.server = await startRedis();
    own.redis = new Redis(own.server.url);
    await own.redis.ping();
    return async () => {
      own.redis.disconnect();
      await own.server.stop();
    };
  });
  return own;
}
