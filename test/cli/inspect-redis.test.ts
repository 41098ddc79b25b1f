import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { startLossyProxy } from '../support/lossy-proxy.js';
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

/** The URL of a proxy before a node of the Cluster. It serves this many connections, and never replies to the others. */
async function startSilent({ served }: { served: number }): Promise<string> {
  const proxy = await startLossyProxy(cluster.servers[0]?.port ?? expect.fail());
  onTestFinished(() => proxy.close());
  proxy.fallSilent(served);
  return `redis://127.0.0.1:${proxy.port}`;
}

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
    const url = await startSilent({ served: 0 });
    expect(await readRecord('any', url, await folderWith(name))).toEqual({
      state: 'unread',
      error: expect.stringContaining('did not reply within 5000 ms') as unknown,
    });
  });

  test('inspect does not wait for a Cluster that stops replying', async () => {
    const url = await startSilent({ served: 1 });
    expect(await readRecord('any', url, await folderWith(name))).toMatchObject({ state: 'unread' });
  });
});

test('inspect ends although a node of the Cluster is down', async () => {
  await cluster.servers[2]?.kill();
  const url = cluster.servers[0]?.url ?? expect.fail();
  const folders = await Promise.all(['ioredis', 'iovalkey', 'redis'].map(folderWith));
  const results = await Promise.all(folders.map((cwd) => inspect({ REDIS_URL: url }, ['any', '--json'], { cwd })));
  // There is no service: nothing can be concluded.
  expect(results.map(({ code }) => code)).toEqual([3, 3, 3]);
});
