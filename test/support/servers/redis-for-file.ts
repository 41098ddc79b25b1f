import { Redis, type RedisOptions } from 'ioredis';
import { beforeAll, onTestFinished } from 'vitest';
import { startRedis, type RedisServer, type RedisServerOptions } from './redis.js';

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

/** Starts a Redis, and stops it after the test. */
export async function startRedisForTest(options?: RedisServerOptions): Promise<RedisServer> {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
}

/** Makes a client, and disconnects it after the test. Its errors are those of its commands. */
export function connectForTest(port: number, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
  const client = new Redis(port, '127.0.0.1', options);
  client.on('error', () => undefined);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}
