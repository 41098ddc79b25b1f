import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore, type IoredisClient, type CallbackStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { ioredisFamily, connectNodeRedis } from '../support/servers/redis-clients.js';
import { claimFree, fingerprint, request } from './support.js';
import { containing } from '../support/helpers/containing.js';
import { connectForTest, startRedisForFile, startRedisForTest } from '../support/servers/redis-for-file.js';
import type { NodeRedisClient } from '../../src/stores/redis/store.js';
import { createDeliveryNamer } from '../../src/core/delivery.js';

const own = startRedisForFile();

function quiet(): undefined {
  return undefined;
}

test('the Redis store keeps one readable key per callback, which Redis expires', async () => {
  const id = crypto.randomUUID();
  const claim = await claimFree(redisStore(own.redis), {}, id);
  const key = `transfer-callbacks:${id}`;
  expect(await own.redis.get(key)).toBe('claimed the-token');
  expect(await own.redis.pttl(key)).toSatisfy((ms: number) => ms > 5_000 && ms <= 10_000);
  await claim.settle();
  expect(await own.redis.get(key)).toBe(`handled the-token ${fingerprint}`);
  expect(await own.redis.pttl(key)).toSatisfy((ms: number) => ms > 50_000 && ms <= 60_000);
  expect(await own.redis.keys(`*${id}*`)).toEqual([key]);
});

test('an overlap is reported again when the settling is repeated after a late reply', async () => {
  const store = redisStore(own.redis);
  const id = crypto.randomUUID();
  const late = await claimFree(store, { token: 'late', leaseMs: 1 }, id);
  await vi.waitUntil(async () => (await own.redis.exists(`transfer-callbacks:${id}`)) === 0);
  await (await claimFree(store, { token: 'next' }, id)).settle();
  expect(await late.settle()).toEqual({ overlapped: true });
  expect(await late.settle()).toEqual({ overlapped: true });
});

test('the Redis store is shared by processes, claims one record at a time and undoes no writes', () => {
  expect(redisStore(own.redis)).toMatchObject({ transactional: false, claimsBoth: false, processLocal: false });
});

test('the Redis store takes another prefix', async () => {
  const id = crypto.randomUUID();
  await claimFree(redisStore(own.redis, { prefix: 'paid/' }), {}, id);
  expect(await own.redis.keys(`*${id}*`)).toEqual([`paid/${id}`]);
});

test.each(Object.entries(ioredisFamily))(
  'the keyPrefix of %s precedes the key of every command',
  async (_, connect) => {
    const client = connect(own.server.port, { keyPrefix: 'merchant:' });
    onTestFinished(() => {
      client.disconnect();
    });
    const store = redisStore(client);
    const id = crypto.randomUUID();
    const key = `merchant:transfer-callbacks:${id}`;
    const claim = await claimFree(store, {}, id);
    expect(await own.redis.keys(`*${id}*`)).toEqual([key]);
    await own.redis.pexpire(key, 1_000_000);
    expect(await claim.renew()).toBe(true);
    expect(await own.redis.pttl(key)).toBeLessThanOrEqual(request.leaseMs);
    expect((await store.claim(id, { ...request, token: 'another' })).state).toBe('in_progress');
    await claim.release();
    expect(await own.redis.keys(`*${id}*`)).toEqual([]);
    await (await claimFree(store, {}, id)).settle();
    expect(await own.redis.keys(`*${id}*`)).toEqual([key]);
    expect(await store.forget(id, fingerprint)).toBe(true);
  },
);

test('a fresh callback costs two commands in two round trips, and a duplicate costs two', async () => {
  const { port } = await startRedisForTest();
  const client = connectForTest(port);
  const monitor = await connectForTest(port).monitor();
  onTestFinished(() => {
    monitor.disconnect();
  });
  const seen: string[] = [];
  monitor.on('monitor', (_time: unknown, args: string[]) => seen.push(args.map((arg) => arg.toUpperCase()).join(' ')));
  const receiver = receiverOf({ store: redisStore(client) });
  const callback = transferSucceeded();
  const key = `TRANSFER-CALLBACKS:${callback.data.id.toUpperCase()}`;
  const seenUntil = async (marker: string): Promise<string[]> => {
    await client.echo(marker);
    await vi.waitUntil(() => seen.at(-1) === `ECHO ${marker}`, { interval: 5 });
    return seen.splice(0).slice(0, -1);
  };
  await seenUntil('START');
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(await seenUntil('FRESH')).toEqual([
    expect.stringMatching(`^SET ${key} CLAIMED \\S+ PX 15000 NX$`),
    expect.stringMatching(`^SET ${key} HANDLED .* PX 604800000 GET$`),
  ]);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(await seenUntil('DUPLICATE')).toEqual([expect.stringMatching(`^SET ${key} .* NX$`), `GET ${key}`]);
});

const refused =
  'Expected `client` to be an ioredis, iovalkey or node-redis client, ' +
  'or an object whose `call` sends a command, got ';
test.each<[string, unknown, unknown, string]>([
  ['null', null, {}, `${refused}null.`],
  ['a URL', 'redis://localhost', {}, `${refused}a string of 17 characters.`],
  [
    "a client whose methods differ, as Upstash's do",
    { get: quiet, set: quiet, eval: quiet, evalsha: quiet },
    {},
    `${refused}an object.`,
  ],
  ['a prefix that is none', { call: quiet }, { prefix: 5 }, 'Expected `prefix` to be a string, got 5.'],
  ['an unknown option', { call: quiet }, { ttl: 5 }, 'Unknown option `ttl`; known are prefix.'],
])('the Redis store refuses %s', (_what, client, options, message) => {
  expect(() => redisStore(client as IoredisClient, options as object)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
  );
});

test('a client in legacyMode runs no handler, and its claims block no other client', async () => {
  const { client, close } = await connectNodeRedis(own.server.port);
  onTestFinished(close);
  const onSuccess = vi.fn();
  const callback = transferSucceeded();
  const legacy = receiverOf({ store: redisStore(inLegacyMode(client)), onSuccess });
  for (let attempt = 1; attempt <= 3; attempt += 1) {
    expect(await legacy.receive(callback)).toMatchObject({
      outcome: 'store_unavailable',
      error: {
        code: 'STORE_REPLY_UNEXPECTED',
        message: containing(
          'Expected the reply to SET NX to be "OK" or null, got undefined. ' +
            'With node-redis in legacyMode, pass `client.v4`.',
        ),
      },
    });
  }
  expect(onSuccess).not.toHaveBeenCalled();
  const receiver = receiverOf({ store: redisStore(client), onSuccess, inFlightWaitMs: 0 });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
});

test('a client that is within a MULTI runs no handler, and reads no record', async () => {
  const client = connectForTest(own.server.port);
  await client.multi({ pipeline: false });
  const onSuccess = vi.fn();
  const receiver = receiverOf({ store: redisStore(client), onSuccess });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({
    outcome: 'store_unavailable',
    error: { code: 'STORE_REPLY_UNEXPECTED', message: containing('got "QUEUED"') },
  });
  expect(onSuccess).not.toHaveBeenCalled();
  await expect(receiver.inspect('any')).rejects.toMatchObject({
    code: 'STORE_REPLY_UNEXPECTED',
    message: containing('Expected the reply to EVAL to be an array, got "QUEUED".'),
  });
});

/**
 * Imitates node-redis 4 in legacyMode, which cannot be installed beside node-redis 6: its methods send the
 * command and resolve with undefined. The client beneath is real.
 */
function inLegacyMode(client: NodeRedisClient): NodeRedisClient {
  const muted =
    <A extends unknown[]>(send: (...args: A) => Promise<unknown>) =>
    async (...args: A): Promise<undefined> => {
      await send(...args);
    };
  return {
    get: muted((key: string) => client.get(key)),
    set: muted((...args: Parameters<NodeRedisClient['set']>) => client.set(...args)),
    eval: muted((...args: Parameters<NodeRedisClient['eval']>) => client.eval(...args)),
    evalSha: client.evalSha,
  };
}

test('an adapter that replies with undefined for nil works, and its check is right', async () => {
  const withoutNil = (reply: unknown): unknown => (Array.isArray(reply) ? reply.map(withoutNil) : (reply ?? undefined));
  const store = redisStore({ call: async (name, ...args) => withoutNil(await own.redis.call(name, ...args)) });
  const onSuccess = vi.fn();
  const receiver = receiverOf({ store, onSuccess, inFlightWaitMs: 0 });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
  expect(onSuccess).toHaveBeenCalledTimes(1);
  expect(await receiver.check()).toMatchObject({ ok: true });
  expect(await receiver.inspect(callback.data.id)).toMatchObject({ state: 'handled' });
  expect(await receiver.inspect('unknown')).toMatchObject({ state: 'free' });
});

const nameDelivery = createDeliveryNamer();

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
