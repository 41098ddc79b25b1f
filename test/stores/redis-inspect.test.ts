import { Redis } from 'ioredis';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore, type IoredisClient, type Claim } from 'transfer-callbacks';
import { createDeliveryNamer } from '../../src/core/delivery.js';
import { startRedis, type RedisServer } from '../support/redis.js';
import { containing } from '../support/containing.js';

const nameDelivery = createDeliveryNamer();
const fingerprint = '["SUCCESS",15000,"XAF","payout 1"]';

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  const started = (server = await startRedis());
  redis = new Redis(server.url);
  return async () => {
    redis.disconnect();
    await started.stop();
  };
});

async function hold(id: string, token: string): Promise<Claim> {
  const reply = await redisStore(redis).claim(id, { token, fingerprint, leaseMs: 10_000, retentionMs: 60_000 });
  return reply.state === 'claimed' ? reply.claim : expect.fail(reply.state);
}

const keyFor = (id: string): string => `transfer-callbacks:${id}`;

function isAbout(ms: number, expectedMs: number): boolean {
  return ms <= expectedMs && ms > expectedMs - 5_000;
}

test('a claim is read with its delivery, the host and process that hold it, since when, and how long it lasts', async () => {
  const id = crypto.randomUUID();
  const token = nameDelivery();
  const [time = '', host = ''] = token.split('/');
  await hold(id, token);
  expect(await redisStore(redis).read(id)).toEqual({
    state: 'claimed',
    delivery: token,
    by: `${host}, process ${process.pid}`,
    since: new Date(time),
    leaseLeftMs: expect.toSatisfy((ms: number) => isAbout(ms, 10_000)) as number,
  });
});

test('a settled callback is read with its delivery, when that came in, and when the record expires', async () => {
  const id = crypto.randomUUID();
  const token = nameDelivery();
  await (await hold(id, token)).settle();
  expect(await redisStore(redis).read(id)).toEqual({
    state: 'settled',
    fingerprint,
    delivery: token,
    settledAt: new Date(token.split('/')[0] ?? ''),
    expiresAt: expect.toSatisfy((time: Date) => isAbout(time.getTime() - Date.now(), 60_000)) as Date,
  });
});

test('a token that does not name a delivery is read as it is, without a holder and a time', async () => {
  const id = crypto.randomUUID();
  const claim = await hold(id, 'any/thing');
  expect(await redisStore(redis).read(id)).toEqual({
    state: 'claimed',
    delivery: 'any/thing',
    leaseLeftMs: expect.any(Number) as number,
  });
  await claim.settle();
  expect(await redisStore(redis).read(id)).toEqual({
    state: 'settled',
    fingerprint,
    delivery: 'any/thing',
    expiresAt: expect.any(Date) as Date,
  });
});

test('a record without an expiry is read without one', async () => {
  const id = crypto.randomUUID();
  await hold(id, 'a');
  await redis.persist(keyFor(id));
  expect(await redisStore(redis).read(id)).toEqual({ state: 'claimed', delivery: 'a' });
});

test('a user without the right to PTTL reads the record, without how long it lasts', async () => {
  const id = crypto.randomUUID();
  await hold(id, 'a');
  await server.command('acl', 'setuser', 'looks', 'on', '>secret', '~*', '+get', '+eval');
  const client = new Redis(server.port, '127.0.0.1', {
    username: 'looks',
    password: 'secret',
    enableReadyCheck: false,
  });
  onTestFinished(() => {
    client.disconnect();
  });
  expect(await redisStore(client).read(id)).toEqual({ state: 'claimed', delivery: 'a' });
});

test('a user without the right to DEL forgets nothing', async () => {
  const id = crypto.randomUUID();
  await (await hold(id, 'a')).settle();
  await server.command('acl', 'setuser', 'keeps', 'on', '>secret', '~*', '+get', '+eval');
  const client = new Redis(server.port, '127.0.0.1', {
    username: 'keeps',
    password: 'secret',
    enableReadyCheck: false,
  });
  onTestFinished(() => {
    client.disconnect();
  });
  await expect(redisStore(client).forget(id, fingerprint)).rejects.toThrow(/no permissions to run|can't run this/);
  expect((await redisStore(redis).read(id)).state).toBe('settled');
});

test('`read` of a record and `forget` cost one command each', async () => {
  const id = crypto.randomUUID();
  await (await hold(id, 'a')).settle();
  const before = await server.calls('eval');
  await redisStore(redis).read(id);
  await redisStore(redis).forget(id, fingerprint);
  expect((await server.calls('eval')) - before).toBe(2);
  expect(await redis.exists(keyFor(id))).toBe(0);
});

test('a replica is read, although its primary is gone', async () => {
  const primary = await startRedis();
  onTestFinished(() => primary.stop());
  await primary.command('set', keyFor('settled'), `settled a ${fingerprint}`);
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(primary.port)] });
  onTestFinished(() => replica.stop());
  const client = new Redis(replica.url);
  onTestFinished(() => {
    client.disconnect();
  });
  const store = redisStore(client);
  await vi.waitUntil(async () => (await store.read('settled').catch(() => undefined))?.state === 'settled');
  await primary.kill();
  expect(await store.read('settled')).toMatchObject({ state: 'settled', fingerprint });
  expect(await store.read('missing')).toEqual({ state: 'free' });
});

test('a server that refuses writes because it is full is read, and forgets', async () => {
  const full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
  onTestFinished(() => full.stop());
  await full.command('set', keyFor('settled'), `settled a ${fingerprint}`);
  await full.command('config', 'set', 'maxmemory', 1);
  const client = new Redis(full.url);
  onTestFinished(() => {
    client.disconnect();
  });
  await expect(client.set('x', 'y')).rejects.toThrow(/^OOM/);
  const store = redisStore(client);
  expect(await store.read('settled')).toEqual({ state: 'settled', fingerprint, delivery: 'a' });
  expect(await store.forget('settled', fingerprint)).toBe(true);
  expect(await store.read('settled')).toEqual({ state: 'free' });
});

describe('a key that the store has not written', () => {
  test.each([
    ['a text of another program', 'hello'],
    ['a record that was cut short', 'settled the-token'],
    ['an empty text', ''],
  ])('holds %s: it is neither read nor forgotten', async (_what, value) => {
    const id = crypto.randomUUID();
    await redis.set(keyFor(id), value);
    await expect(redisStore(redis).read(id)).rejects.toMatchObject({ code: 'STORE_RECORD_UNREADABLE' });
    expect(await redisStore(redis).forget(id, value)).toBe(false);
    expect(await redis.get(keyFor(id))).toBe(value);
  });

  test('holds a list: it is neither read nor forgotten', async () => {
    const id = crypto.randomUUID();
    await redis.lpush(keyFor(id), 'x');
    await expect(redisStore(redis).read(id)).rejects.toThrow(/WRONGTYPE/);
    await expect(redisStore(redis).forget(id, 'x')).rejects.toThrow(/WRONGTYPE/);
    expect(await redis.exists(keyFor(id))).toBe(1);
  });
});

test('a reply that is not an array is not taken for a record', async () => {
  const client = new Redis(server.url);
  onTestFinished(() => {
    client.disconnect();
  });
  await client.multi({ pipeline: false });
  await expect(redisStore(client).read(crypto.randomUUID())).rejects.toMatchObject({
    code: 'STORE_REPLY_UNEXPECTED',
    message: containing('Expected the reply to EVAL to be an array, got "QUEUED".'),
  });
});

test('a record that expires between two reads is read as free', async () => {
  const id = crypto.randomUUID();
  await (await hold(id, 'a')).settle();
  await redis.pexpire(keyFor(id), 1);
  await vi.waitFor(async () => {
    expect(await redisStore(redis).read(id)).toEqual({ state: 'free' });
  });
  expect(await redisStore(redis).forget(id, fingerprint)).toBe(false);
});

test('every command name of `read` and `forget` is in lower case, so that each client finds the key', async () => {
  const sent: string[] = [];
  const spy: IoredisClient = {
    call(command, ...args) {
      sent.push(command);
      return redis.call(command, ...args);
    },
  };
  await redisStore(spy).read('x');
  await redisStore(spy).forget('x', fingerprint);
  expect(sent).toEqual(['eval', 'eval']);
});
