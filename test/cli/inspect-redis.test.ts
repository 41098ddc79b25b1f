import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { startRedisCluster, type RedisCluster } from '../support/redis.js';
import { folderWith, inspect } from './inspect-support.js';
import { objects } from './support.js';

// Each command is a process of its own, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.stop());

const readRecord = async (id: string, redisUrl: string, cwd: string): Promise<unknown> => {
  const { out } = await inspect({ REDIS_URL: redisUrl }, [id, '--json'], { cwd });
  return (objects(out)[0] as { record: unknown }).record;
};

describe.each(['ioredis', 'iovalkey', 'redis'])('with %s', (name) => {
  test('inspect reads the records of every node of a Cluster', async () => {
    // The rights that docs/stores.md lists.
    const rights = '+set +get +del +pexpire +eval +info +cluster|slots +cluster|info'.split(' ');
    for (const server of cluster.servers) {
      await server.command('ACL', 'SETUSER', 'payouts', 'on', '>pass@word', '~transfer-callbacks:*', ...rights);
    }
    const client = new Cluster([...cluster.nodes]);
    onTestFinished(() => {
      client.disconnect();
    });
    const receiver = receiverOf({ store: redisStore(client) });
    const callbacks = Array.from({ length: 6 }, () => transferSucceeded());
    for (const callback of callbacks) await receiver.receive(callback);
    const url = cluster.servers[0]?.url.replace('//', '//payouts:pass%40word@') ?? expect.fail();
    const cwd = await folderWith(name);
    const records = await Promise.all(callbacks.map(({ data }) => readRecord(data.id, url, cwd)));
    expect(records).toEqual(records.map(() => expect.objectContaining({ state: 'settled' }) as unknown));
  });

  test('inspect does not wait for a Redis that never replies', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const url = `redis://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    expect(await readRecord('any', url, await folderWith(name))).toEqual({
      state: 'unread',
      error: expect.stringContaining('did not reply within 5000 ms') as unknown,
    });
  });
});
