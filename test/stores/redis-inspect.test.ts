import { beforeAll, describe, expect, test, vi } from 'vitest';
import { redisStore, type CallbackStore } from 'transfer-callbacks';
import { createDeliveryNamer } from '../../src/core/delivery.js';
import { connectForTest, startRedisForFile, startRedisForTest } from '../support/servers/redis-for-file.js';
import { claimFree, fingerprint } from './support.js';

const nameDelivery = createDeliveryNamer();

const own = startRedisForFile();
let store: Required<Omit<CallbackStore, 'check'>>;
beforeAll(() => {
  store = redisStore(own.redis);
});

const keyFor = (id: string): string => `transfer-callbacks:${id}`;

function isAbout(ms: number, expectedMs: number): boolean {
  return ms <= expectedMs && ms > expectedMs - 5_000;
}

test('a claim is read with its delivery, the host and process that hold it, since when, and how long it lasts', async () => {
  const id = crypto.randomUUID();
  const token = nameDelivery();
  const [time = '', host = ''] = token.split('/');
  await claimFree(store, { token }, id);
  expect(await store.read(id)).toEqual({
    state: 'claimed',
    delivery: token,
    by: `${host}, process ${process.pid}`,
    since: new Date(time),
    leaseLeftMs: expect.toSatisfy((ms: number) => isAbout(ms, 10_000)) as number,
  });
});

test('a handled callback is read with its delivery, when that came in, and when the record expires', async () => {
  const id = crypto.randomUUID();
  const token = nameDelivery();
  await (await claimFree(store, { token }, id)).settle();
  expect(await store.read(id)).toEqual({
    state: 'handled',
    fingerprint,
    delivery: token,
    handledAt: new Date(token.split('/')[0] ?? ''),
    expiresAt: expect.toSatisfy((time: Date) => isAbout(time.getTime() - Date.now(), 60_000)) as Date,
  });
});

test('a token that does not name a delivery is read as it is, without a holder and a time', async () => {
  const id = crypto.randomUUID();
  const claim = await claimFree(store, { token: 'any/thing' }, id);
  expect(await store.read(id)).toEqual({
    state: 'claimed',
    delivery: 'any/thing',
    leaseLeftMs: expect.any(Number) as number,
  });
  await claim.settle();
  expect(await store.read(id)).toEqual({
    state: 'handled',
    fingerprint,
    delivery: 'any/thing',
    expiresAt: expect.any(Date) as Date,
  });
});

test('a record without an expiry is read without one', async () => {
  const id = crypto.randomUUID();
  await claimFree(store, { token: 'a' }, id);
  await own.redis.persist(keyFor(id));
  expect(await store.read(id)).toEqual({ state: 'claimed', delivery: 'a' });
});

test('a user without the rights to PTTL and DEL reads the record, without how long it lasts, and forgets nothing', async () => {
  const id = crypto.randomUUID();
  await (await claimFree(store, { token: 'a' }, id)).settle();
  await own.server.command('acl', 'setuser', 'looks', 'on', '>secret', '~*', '+get', '+eval');
  const client = connectForTest(own.server.port, {
    username: 'looks',
    password: 'secret',
    enableReadyCheck: false,
  });
  const handled = { state: 'handled', fingerprint, delivery: 'a' };
  expect(await redisStore(client).read(id)).toEqual(handled);
  await expect(redisStore(client).forget(id, fingerprint)).rejects.toThrow(/no permissions to run|can't run this/);
  expect(await store.read(id)).toMatchObject(handled);
});

test('`read` of a record and `forget` cost one command each', async () => {
  const id = crypto.randomUUID();
  await (await claimFree(store, {}, id)).settle();
  const before = await own.server.calls('eval');
  await store.read(id);
  await store.forget(id, fingerprint);
  expect((await own.server.calls('eval')) - before).toBe(2);
  expect(await own.redis.exists(keyFor(id))).toBe(0);
});

test('a replica is read, although its primary is gone', async () => {
  const primary = await startRedisForTest();
  await primary.command('set', keyFor('handled'), `handled a ${fingerprint}`);
  const replica = await startRedisForTest({ args: ['--replicaof', '127.0.0.1', String(primary.port)] });
  const client = connectForTest(replica.port);
  const onReplica = redisStore(client);
  await vi.waitUntil(async () => (await onReplica.read('handled').catch(() => undefined))?.state === 'handled');
  await primary.kill();
  expect(await onReplica.read('handled')).toMatchObject({ state: 'handled', fingerprint });
  expect(await onReplica.read('missing')).toEqual({ state: 'free' });
});

test('a server that refuses writes because it is full is read, and forgets', async () => {
  const full = await startRedisForTest({ args: ['--maxmemory-policy', 'noeviction'] });
  await full.command('set', keyFor('handled'), `handled a ${fingerprint}`);
  await full.command('config', 'set', 'maxmemory', 1);
  const client = connectForTest(full.port);
  await expect(client.set('x', 'y')).rejects.toThrow(/^OOM/);
  const onFull = redisStore(client);
  expect(await onFull.read('handled')).toEqual({ state: 'handled', fingerprint, delivery: 'a' });
  expect(await onFull.forget('handled', fingerprint)).toBe(true);
  expect(await onFull.read('handled')).toEqual({ state: 'free' });
});

describe('a key that the store has not written', () => {
  test.each([
    ['a record that was cut short', 'handled the-token'],
    ['an empty text', ''],
  ])('holds %s: it is neither read nor forgotten', async (_what, value) => {
    const id = crypto.randomUUID();
    await own.redis.set(keyFor(id), value);
    await expect(store.read(id)).rejects.toMatchObject({ code: 'STORE_RECORD_UNREADABLE' });
    expect(await store.forget(id, value)).toBe(false);
    expect(await own.redis.get(keyFor(id))).toBe(value);
  });

  test('holds a list: it is neither read nor forgotten', async () => {
    const id = crypto.randomUUID();
    await own.redis.lpush(keyFor(id), 'x');
    await expect(store.read(id)).rejects.toThrow(/WRONGTYPE/);
    await expect(store.forget(id, 'x')).rejects.toThrow(/WRONGTYPE/);
    expect(await own.redis.exists(keyFor(id))).toBe(1);
  });
});
