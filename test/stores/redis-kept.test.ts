import { Redis } from 'ioredis';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore, type CallbackStore, type RecordsKept } from 'transfer-callbacks';
import { startRedis, type RedisServer } from '../support/redis.js';
import { claimFree } from './support.js';

let server: RedisServer;
beforeAll(async () => {
  const started = (server = await startRedis());
  return () => started.stop();
});

function connect({ port }: RedisServer, options: object = {}): Redis {
  const client = new Redis(port, '127.0.0.1', options);
  onTestFinished(() => {
    client.disconnect();
  });
  return client;
}

async function readKept(store: Required<CallbackStore>): Promise<RecordsKept | undefined> {
  const record = await store.read('never-claimed');
  return record.state === 'free' ? record.kept : expect.fail(record.state);
}

/** Claims with this retention, and waits until the store tells it. */
async function keepFor(store: Required<CallbackStore>, retentionMs: number): Promise<RecordsKept> {
  await claimFree(store, { retentionMs });
  return vi.waitUntil(async () => {
    const kept = await readKept(store);
    return kept?.retentionMs === retentionMs ? kept : false;
  });
}

describe('since when records are kept', () => {
  test('is not known before a receiver has claimed, and then for this prefix alone', async () => {
    const redis = connect(server);
    const [prefix, other] = [`${crypto.randomUUID()}:`, `${crypto.randomUUID()}:`];
    const store = redisStore(redis, { prefix });
    expect(await readKept(store)).toBeUndefined();
    const before = Date.now();
    const { since } = await keepFor(store, 100_000);
    expect(since.getTime()).toBeGreaterThanOrEqual(before);
    expect(since.getTime()).toBeLessThanOrEqual(Date.now());
    expect(await readKept(redisStore(redis, { prefix: other }))).toBeUndefined();
    expect(await redis.get(prefix)).toBe(`kept since ${since.toISOString()} for 100000 ms`);
    expect(await redis.pttl(prefix)).toBe(-1);
  });

  test('is not read out of a value that only has a note in it', async () => {
    const redis = connect(server);
    const prefix = `${crypto.randomUUID()}:`;
    const note = 'kept since 2026-10-05T02:58:12.113Z for 5 ms';
    for (const value of [`was ${note}`, `${note} and more`, 'kept since then for 5 ms', 'other']) {
      await redis.set(prefix, value);
      expect(await readKept(redisStore(redis, { prefix }))).toBeUndefined();
    }
    await redis.set(prefix, note);
    const since = new Date('2026-10-05T02:58:12.113Z');
    expect(await readKept(redisStore(redis, { prefix }))).toEqual({ since, retentionMs: 5 });
  });

  test('stays as it is when other processes claim with the same retention', async () => {
    const redis = connect(server);
    const prefix = `${crypto.randomUUID()}:`;
    const first = await keepFor(redisStore(redis, { prefix }), 100_000);
    const evals = await server.calls('eval');
    await claimFree(redisStore(redis, { prefix }), { retentionMs: 100_000 });
    await vi.waitUntil(async () => (await server.calls('eval')) > evals);
    expect(await readKept(redisStore(redis, { prefix }))).toEqual(first);
  });

  test.each([200_000, 95_000])('begins anew when a process keeps them for another time, %i ms', async (retentionMs) => {
    const redis = connect(server);
    const prefix = `${crypto.randomUUID()}:`;
    const first = await keepFor(redisStore(redis, { prefix }), 100_000);
    await vi.waitUntil(() => Date.now() > first.since.getTime());
    const next = await keepFor(redisStore(redis, { prefix }), retentionMs);
    expect(next.since.getTime()).toBeGreaterThan(first.since.getTime());
  });

  test('is the shortest retention of the receivers on one store', async () => {
    const store = redisStore(connect(server), { prefix: `${crypto.randomUUID()}:` });
    await keepFor(store, 200_000);
    await keepFor(store, 100_000);
    const evals = await server.calls('eval');
    await claimFree(store, { retentionMs: 200_000 });
    expect(await server.calls('eval')).toBe(evals);
  });

  test('is written again within a minute after the server was emptied', async () => {
    const own = await startRedis();
    onTestFinished(() => own.stop());
    const redis = connect(own);
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const store = redisStore(redis);
    const first = await keepFor(store, 100_000);
    await redis.flushall();
    expect(await readKept(store)).toBeUndefined();
    await vi.waitUntil(() => Date.now() > first.since.getTime());
    vi.advanceTimersByTime(60_000);
    expect((await keepFor(store, 100_000)).since.getTime()).toBeGreaterThan(first.since.getTime());
  });

  test('costs 1 000 claims one command', async () => {
    const store = redisStore(connect(server), { prefix: `${crypto.randomUUID()}:` });
    const evals = await server.calls('eval');
    await Promise.all(Array.from({ length: 1_000 }, () => claimFree(store)));
    await vi.waitUntil(() => readKept(store));
    const reads = (await server.calls('eval')) - evals - 1;
    expect(reads).toBeLessThan(100); // `readKept` sends one for each try.
  });

  test('fails no claim if it cannot be written', async () => {
    const store = redisStore(connect(server), { prefix: 'kept-elsewhere:' });
    await server.command('lpush', 'kept-elsewhere:', 'a list');
    await claimFree(store);
    await expect(store.read('other')).rejects.toThrow('WRONGTYPE');
  });
});

describe('a replica', () => {
  test('shows its records, and rejects where it has none, although its primary is gone', async () => {
    const primary = await startRedis();
    onTestFinished(() => primary.stop());
    const lease = await claimFree(redisStore(connect(primary)), {}, 'settled');
    await lease.settle();
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(primary.port)] });
    onTestFinished(() => replica.stop());
    const store = redisStore(connect(replica));
    await vi.waitUntil(async () => (await store.read('settled').catch(() => undefined))?.state === 'settled');
    const refused = { code: 'STORE_NOT_PRIMARY', message: expect.stringContaining('is a replica') as string };
    await expect(store.read('missing')).rejects.toMatchObject(refused);
    await primary.kill();
    await expect(store.read('missing')).rejects.toMatchObject(refused);
    expect((await store.read('settled')).state).toBe('settled');
  });
});
