import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore, type IoredisClient } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { ioredisFamily } from '../support/servers/redis-clients.js';
import { claimFree, fingerprint, request } from './support.js';
import { containing } from '../support/helpers/containing.js';
import { connectForTest, startRedisForFile, startRedisForTest } from '../support/servers/redis-for-file.js';

const own = startRedisForFile();

describe('the Redis store', () => {
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
    monitor.on('monitor', (_time: unknown, args: string[]) =>
      seen.push(args.map((arg) => arg.toUpperCase()).join(' ')),
    );
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
});

function quiet(): undefined {
  return undefined;
}
