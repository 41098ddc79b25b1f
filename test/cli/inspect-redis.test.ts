import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { startLossyProxy } from '../support/lossy-proxy.js';
import { startRedisCluster, type RedisCluster } from '../support/redis.js';
import { folderOf, folderWith, inspect } from './inspect-support.js';
import { objects } from './support.js';
import { containing } from '../support/containing.js';

// Each command is a separate process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startRedisCluster();
});
afterAll(() => cluster.stop());

async function settle(count: number): Promise<string[]> {
  const client = new Cluster([...cluster.nodes]);
  onTestFinished(() => {
    client.disconnect();
  });
  const receiver = receiverOf({ store: redisStore(client) });
  const callbacks = Array.from({ length: count }, () => transferSucceeded());
  for (const callback of callbacks) await receiver.receive(callback);
  return callbacks.map(({ data }) => data.id);
}

test('inspect reads the records of a Cluster with the store of the app', async () => {
  const ids = await settle(6);
  const cwd = await folderOf(`
    import { Cluster } from 'ioredis';
    import { redisStore } from 'transfer-callbacks';
    export const store = redisStore(new Cluster(${JSON.stringify(cluster.nodes)}));
  `);
  const { code, out } = await inspect({}, ['--json'], { cwd, stdin: ids.join('\n') });
  expect(code).toBe(3);
  expect((objects(out) as { record: { state: string } }[]).map(({ record }) => record.state)).toEqual(
    // Of the service nothing is known: after five the others are not tried.
    ids.slice(0, 5).map(() => 'settled'),
  );
});

describe.each(['ioredis', 'iovalkey', 'redis'])('with %s', (name) => {
  test('inspect of one node of a Cluster tells what to do instead', async () => {
    const ids = await settle(6);
    const cwd = await folderWith(name);
    const results = await Promise.all(
      ids.map((id) => inspect({ REDIS_URL: cluster.servers[0]?.url ?? '' }, [id], { cwd })),
    );
    const printed = results.map(({ out }) => out.replaceAll(/\n {12}/g, ' ')).join('');
    expect(printed).toMatch(
      /record {4}Redis at 127\.0\.0\.1:\d+: .*MOVED .* It is a node of a Cluster: see --config in the help\./,
    );
    expect(results.map(({ code }) => code)).toEqual(ids.map(() => 3));
  });

  test('inspect does not wait for a Redis that never replies, and names it', async () => {
    const proxy = await startLossyProxy(cluster.servers[0]?.port ?? expect.fail());
    onTestFinished(() => proxy.close());
    proxy.fallSilent(0);
    const { out } = await inspect({ REDIS_URL: `redis://127.0.0.1:${proxy.port}` }, ['any', '--json'], {
      cwd: await folderWith(name),
    });
    const error = `Redis at 127.0.0.1:${proxy.port}: The store did not reply within 10000 ms.`;
    expect(objects(out)).toMatchObject([{ record: { state: 'unread', error: containing(error) } }]);
  });
});
