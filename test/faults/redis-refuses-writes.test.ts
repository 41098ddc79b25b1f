import { rm } from 'node:fs/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { freePort } from '../support/servers/port.js';
import { clientsOfOneServer } from '../support/servers/redis-clients.js';
import type { RedisServer } from '../support/servers/redis.js';
import { connectForTest, startRedisForTest } from '../support/servers/redis-for-file.js';

/** Makes the server refuse every write. Resolves with how to end it. */
const refusals: Record<string, (server: RedisServer) => Promise<() => Promise<unknown>>> = {
  OOM: async (server) => {
    await server.command('config', 'set', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    return () => server.command('config', 'set', 'maxmemory', '0');
  },
  READONLY: async (server) => {
    await server.command('replicaof', '127.0.0.1', await freePort());
    return () => server.command('replicaof', 'no', 'one');
  },
  NOREPLICAS: async (server) => {
    await server.command('config', 'set', 'min-replicas-to-write', '1');
    return () => server.command('config', 'set', 'min-replicas-to-write', '0');
  },
  MISCONF: async (server) => {
    await server.command('config', 'set', 'save', '3600 1');
    const [, directory] = (await server.command('config', 'get', 'dir')) as [string, string];
    await rm(directory, { recursive: true });
    await server.command('bgsave');
    await vi.waitUntil(async () =>
      String(await server.command('info', 'persistence')).includes('rdb_last_bgsave_status:err'),
    );
    return () => server.command('config', 'set', 'save', '');
  },
};

// Both pass on the server's text: one refusal is enough for node-redis.
const cases = [...Object.keys(refusals).map((code) => [code, 'ioredis 6'] as const), ['OOM', 'node-redis'] as const];

describe.each(cases)('while Redis refuses writes with %s, with %s', (code, name) => {
  test('a handled callback is a duplicate while writes are refused, and any other is store_unavailable and runs no handler', async () => {
    const server = await startRedisForTest();
    const { client, close } = await (clientsOfOneServer[name] ?? expect.fail())(server.port);
    onTestFinished(() => void close());
    const held = later();
    const onSuccess = vi.fn().mockResolvedValue(undefined);
    const options = { store: redisStore(client), onSuccess, inFlightWaitMs: 0 };
    const [receiver, elsewhere] = [receiverOf(options), receiverOf(options)];
    const [handled, running, fresh] = [transferSucceeded(), transferSucceeded(), transferSucceeded()];
    expect(await receiver.receive(handled)).toMatchObject({ outcome: 'processed' });
    onSuccess.mockReturnValueOnce(held.promise);
    const first = receiver.receive(running);
    await vi.waitUntil(() => onSuccess.mock.calls.length === 2);

    const endRefusal = await (refusals[code] ?? expect.fail())(server);
    expect(await receiver.receive(handled)).toMatchObject({ outcome: 'duplicate' });
    const otherFacts = { ...handled, data: { ...handled.data, amount: handled.data.amount + 1 } };
    expect(await receiver.receive(otherFacts)).toMatchObject({ outcome: 'conflict' });
    for (const callback of [running, fresh]) {
      expect(await elsewhere.receive(callback)).toMatchObject({
        outcome: 'store_unavailable',
        error: { message: expect.stringMatching(`^${code} `) as string },
      });
    }
    expect(onSuccess).toHaveBeenCalledTimes(2);

    await endRefusal();
    expect(await receiver.receive(fresh)).toMatchObject({ outcome: 'processed' });
    expect(await elsewhere.receive(running)).toMatchObject({ outcome: 'in_progress' });
    held.resolve();
    expect(await first).toMatchObject({ outcome: 'processed', overlapped: false });
    expect(onSuccess).toHaveBeenCalledTimes(3);
  });
});

test('receiver.check finds a full Redis, which still replies to a ping and to GET', async () => {
  const server = await startRedisForTest();
  const client = connectForTest(server.port);
  const receiver = receiverOf({ store: redisStore(client) });
  expect(await receiver.check()).toMatchObject({ ok: true });
  expect(await client.keys('*')).toEqual([]);
  await refusals.OOM?.(server);
  expect(await client.ping()).toBe('PONG');
  expect(await client.get('a')).toBeNull();
  expect(await receiver.check()).toMatchObject({
    ok: false,
    error: { message: expect.stringMatching(/^OOM /) as string },
  });
});

test('receiver.check finds a user that may claim and may not read, as the next copy would', async () => {
  const server = await startRedisForTest();
  await server.command('acl', 'setuser', 'payouts', 'on', '>secret', '~*', '+@all');
  const client = connectForTest(server.port, { username: 'payouts', password: 'secret' });
  const receiver = receiverOf({ store: redisStore(client) });
  const callback = transferSucceeded();
  expect(await receiver.check()).toMatchObject({ ok: true });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  await server.command('acl', 'setuser', 'payouts', '-get');
  const refused = { error: { message: expect.stringMatching(/^NOPERM /) as string } };
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'store_unavailable', ...refused });
  expect(await receiver.check()).toMatchObject({ ok: false, ...refused });
});
