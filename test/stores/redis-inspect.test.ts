import { beforeAll, expect, test, vi } from 'vitest';
import { redisStore, type CallbackStore } from 'transfer-callbacks';
import { createDeliveryNamer } from '../../src/core/delivery.js';
import { connectForTest, startRedisForFile, startRedisForTest } from '../support/servers/redis-for-file.js';
import { claimFree, fingerprint, request } from './support.js';
import { containing } from '../support/helpers/containing.js';

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

test('a claim and a record are read with what their token tells: who holds it, and when it came in', async () => {
  const named = nameDelivery();
  const [time = '', host = ''] = named.split('/');
  for (const [token, holder, times] of [
    [named, { by: `${host}, process ${process.pid}`, since: new Date(time) }, { handledAt: new Date(time) }],
    ['any/thing', {}, {}],
  ] as const) {
    const id = crypto.randomUUID();
    const claim = await claimFree(store, { token }, id);
    const leaseLeftMs = expect.toSatisfy((ms: number) => isAbout(ms, 10_000)) as number;
    expect(await store.read(id)).toEqual({ state: 'claimed', delivery: token, leaseLeftMs, ...holder });
    await claim.settle();
    const expiresAt = expect.toSatisfy((end: Date) => isAbout(end.getTime() - Date.now(), 60_000)) as Date;
    expect(await store.read(id)).toEqual({ state: 'handled', fingerprint, delivery: token, expiresAt, ...times });
  }
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

test('a key that the store has not written is neither claimed, read nor forgotten', async () => {
  for (const value of ['handled the-token', 'claimed', 'once claimed the-token', '']) {
    const id = crypto.randomUUID();
    await own.redis.set(keyFor(id), value);
    const unreadable = {
      code: 'STORE_RECORD_UNREADABLE',
      message: containing(`The key ${keyFor(id)} holds something other than a callback record.`),
    };
    await expect(store.claim(id, request)).rejects.toMatchObject(unreadable);
    await expect(store.read(id)).rejects.toMatchObject(unreadable);
    expect(await store.forget(id, value)).toBe(false);
    expect(await own.redis.get(keyFor(id))).toBe(value);
  }
  const list = crypto.randomUUID();
  await own.redis.lpush(keyFor(list), 'x');
  await expect(store.read(list)).rejects.toThrow(/WRONGTYPE/);
  await expect(store.forget(list, 'x')).rejects.toThrow(/WRONGTYPE/);
  expect(await own.redis.exists(keyFor(list))).toBe(1);
});
