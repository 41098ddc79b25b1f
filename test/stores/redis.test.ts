import { Cluster as ValkeyCluster, Redis as Valkey } from 'iovalkey';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5';
import { createClient, createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { redisStore, type CallbackStore, type IoredisClient, type NodeRedisClient } from 'transfer-callbacks';
import { storePromises, transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { startRedis, startRedisCluster, type RedisCluster, type RedisServer } from '../support/redis.js';

const quiet = (): undefined => undefined;
const fingerprint = '["SUCCESS",15000,"XAF","payout 1"]';
const request = { token: 'the-token', fingerprint, leaseMs: 10_000, retentionMs: 60_000 };

interface Connected {
  client: IoredisClient | NodeRedisClient;
  close(): unknown;
}

let server: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [server, cluster] = await Promise.all([startRedis(), startRedisCluster()]);
});
afterAll(() => Promise.all([server, cluster].map((each) => each.stop())));

const onOneServer: Record<string, () => Promise<Connected> | Connected> = {
  'ioredis 6': () => closing(new Redis(server.url)),
  'ioredis 6 with auto-pipelining': () => closing(new Redis(server.url, { enableAutoPipelining: true })),
  'ioredis 6 with a key prefix': () => closing(new Redis(server.url, { keyPrefix: 'merchant:' })),
  'ioredis 5': () => closing(new Redis5(server.url)),
  iovalkey: () => closing(new Valkey(server.url)),
  'node-redis': async () => {
    const client = await createClient({ url: server.url }).connect();
    return { client, close: () => client.close() };
  },
};
const onACluster: Record<string, () => Promise<Connected> | Connected> = {
  'ioredis 6': () => closing(new Cluster([...cluster.nodes])),
  'ioredis 6 with auto-pipelining': () => closing(new Cluster([...cluster.nodes], { enableAutoPipelining: true })),
  'ioredis 5': () => closing(new Cluster5([...cluster.nodes])),
  iovalkey: () => closing(new ValkeyCluster([...cluster.nodes])),
  'node-redis': async () => {
    const client = createCluster({
      rootNodes: cluster.nodes.map(({ host, port }) => ({ url: `redis://${host}:${port}` })),
    });
    await client.connect();
    return { client, close: () => client.close() };
  },
};

function closing(client: IoredisClient & { quit(): Promise<unknown> }): Connected {
  return { client, close: () => client.quit() };
}

describe.each([
  ['on one server', onOneServer],
  ['on a cluster of three masters', onACluster],
])('redisStore %s', (_where, clients) => {
  describe.each(Object.keys(clients))('with %s', (name) => {
    let connected: Connected;
    let store: CallbackStore;
    beforeAll(async () => {
      connected = await (clients[name] ?? expect.fail)();
      store = redisStore(connected.client);
    });
    afterAll(() => connected.close());

    test.concurrent.each(storePromises)('$title', ({ check }) => check(store));

    test('a script that the server has forgotten is sent again', async () => {
      const claim = await store.claim(`forgotten-${crypto.randomUUID()}`, request);
      if (claim.state !== 'claimed') expect.fail(claim.state);
      const nodes = clients === onOneServer ? [server.port] : cluster.nodes.map(({ port }) => port);
      for (const call of [() => claim.lease.renew(), () => claim.lease.release()]) {
        for (const port of nodes) {
          const direct = new Redis(port, '127.0.0.1');
          await direct.call('SCRIPT', 'FLUSH');
          await direct.quit();
        }
        expect([true, undefined]).toContain(await call());
      }
    });
  });
});

describe('redisStore', () => {
  let redis: Redis;
  beforeAll(() => {
    redis = new Redis(server.url);
  });
  afterAll(() => redis.quit());

  test('keeps one readable key per callback, which Redis itself expires', async () => {
    const id = crypto.randomUUID();
    const claim = await redisStore(redis).claim(id, request);
    const key = `transfer-callbacks:${id}`;
    expect(await redis.get(key)).toBe('claimed the-token');
    expect(await redis.pttl(key)).toSatisfy((ms: number) => ms > 5_000 && ms <= 10_000);
    if (claim.state === 'claimed') await claim.lease.settle();
    expect(await redis.get(key)).toBe(`settled the-token ${fingerprint}`);
    expect(await redis.pttl(key)).toSatisfy((ms: number) => ms > 50_000 && ms <= 60_000);
    expect(await redis.keys(`*${id}*`)).toEqual([key]);
  });

  test('takes another prefix', async () => {
    const id = crypto.randomUUID();
    await redisStore(redis, { prefix: 'paid/' }).claim(id, request);
    expect(await redis.keys(`*${id}*`)).toEqual([`paid/${id}`]);
  });

  test('spends two commands in two round trips on a fresh callback, and two on a duplicate', async () => {
    const own = await startRedis();
    const client = new Redis(own.url);
    const monitoring = new Redis(own.url);
    const seen: string[] = [];
    const monitor = await monitoring.monitor();
    monitor.on('monitor', (_time: unknown, args: string[]) =>
      seen.push(args.map((arg) => arg.toUpperCase()).join(' ')),
    );
    const receiver = receiverOf({ store: redisStore(client) });
    const callback = transferSucceeded();
    const key = `TRANSFER-CALLBACKS:${callback.data.id.toUpperCase()}`;
    const seenUntil = async (marker: string): Promise<string[]> => {
      await client.echo(marker);
      await vi.waitUntil(() => seen.at(-1) === `ECHO ${marker}`, { timeout: 10_000, interval: 5 });
      return seen.splice(0).slice(0, -1);
    };
    await seenUntil('START');
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
    expect(await seenUntil('FRESH')).toEqual([
      expect.stringMatching(`^SET ${key} CLAIMED \\S+ PX 15000 NX$`),
      expect.stringMatching(`^SET ${key} SETTLED .* PX 604800000 GET$`),
    ]);
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    expect(await seenUntil('DUPLICATE')).toEqual([expect.stringMatching(`^SET ${key} .* NX$`), `GET ${key}`]);
    monitor.disconnect();
    monitoring.disconnect();
    client.disconnect();
    await own.stop();
  });

  test.each([
    ['a text of somebody else', (key: string) => redis.set(key, 'hello')],
    ['a record that was cut short', (key: string) => redis.set(key, 'settled the-token')],
  ])('believes nothing where it finds %s', async (_what, plant) => {
    const onSuccess = vi.fn();
    const callback = transferSucceeded();
    await plant(`transfer-callbacks:${callback.data.id}`);
    expect(await receiverOf({ store: redisStore(redis), onSuccess }).receive(callback)).toMatchObject({
      outcome: 'store_unavailable',
      error: {
        code: 'STORE_RECORD_UNREADABLE',
        message: `The key transfer-callbacks:${callback.data.id} holds something else than a callback.`,
      },
    });
    expect(onSuccess).not.toHaveBeenCalled();
  });

  test('fails closed where it finds another type', async () => {
    const onSuccess = vi.fn();
    const callback = transferSucceeded();
    await redis.lpush(`transfer-callbacks:${callback.data.id}`, 'x');
    expect(await receiverOf({ store: redisStore(redis), onSuccess }).receive(callback)).toMatchObject({
      outcome: 'store_unavailable',
      error: { message: expect.stringContaining('WRONGTYPE') as string },
    });
    expect(onSuccess).not.toHaveBeenCalled();
  });

  test('fails closed when Redis is full', async () => {
    const full = await startRedis({ args: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'] });
    const client = new Redis(full.url);
    const onSuccess = vi.fn();
    expect(await receiverOf({ store: redisStore(client), onSuccess }).receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error: { message: expect.stringContaining('OOM') as string },
    });
    expect(onSuccess).not.toHaveBeenCalled();
    client.disconnect();
    await full.stop();
  });

  test('an error of a script other than a forgotten one is not tried again', async () => {
    const own = await startRedis();
    const client = new Redis(own.url);
    const claim = await redisStore(client).claim('x', request);
    if (claim.state !== 'claimed') expect.fail(claim.state);
    await client.acl('SETUSER', 'default', '-evalsha');
    await expect(claim.lease.renew()).rejects.toThrow('NOPERM');
    expect(await own.calls('eval')).toBe(0);
    client.disconnect();
    await own.stop();
  });

  test.each<[string, unknown, unknown, string]>([
    ['no client', undefined, {}, 'Expected `client` to be an ioredis, iovalkey or node-redis client, got undefined.'],
    ['null', null, {}, 'Expected `client` to be an ioredis, iovalkey or node-redis client, got null.'],
    [
      'a URL',
      'redis://localhost',
      {},
      'Expected `client` to be an ioredis, iovalkey or node-redis client, got a string of 17 characters.',
    ],
    ['a Map', new Map(), {}, 'Expected `client` to be an ioredis, iovalkey or node-redis client, got an object.'],
    ['a prefix that is none', { call: quiet }, { prefix: 5 }, 'Expected `prefix` to be a string, got 5.'],
    ['an unknown option', { call: quiet }, { ttl: 5 }, 'Unknown option `ttl`; known are prefix.'],
  ])('refuses %s', (_what, client, options, message) => {
    expect(() => redisStore(client as IoredisClient, options as object)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message }),
    );
  });
});
