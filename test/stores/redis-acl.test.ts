import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { redisStore, type CallbackStore, type Claim } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import {
  clientsOfACluster,
  closing,
  connectNodeRedis,
  ioredisFamily,
  type Connected,
} from '../support/redis-clients.js';
import { startRedis, startRedisCluster, type RedisCluster, type RedisServer } from '../support/redis.js';

// The line that docs/stores.md shows, as it is.
const page = readFileSync(new URL('../../docs/stores.md', import.meta.url), 'utf8');
const [, username = '', password = '', prefix = '', rights = ''] =
  /`ACL SETUSER (\S+) on >(\S+) ~(\S+)\* ([^`]+)`/.exec(page) ?? [];
const [, clusterRights = ''] = /`([^`]+)` on a Cluster/.exec(page) ?? [];

async function restrict(server: RedisServer, ...moreRights: string[]): Promise<void> {
  const line = ['on', `>${password}`, `~${prefix}*`, ...rights.split(' '), ...moreRights];
  await server.command('acl', 'setuser', username, ...line);
}

const clients: Record<string, (port: number) => Connected | Promise<Connected>> = {
  ...Object.fromEntries(
    Object.entries(ioredisFamily).map(([name, connect]) => [
      name,
      (port: number) => closing(connect(port, { username, password })),
    ]),
  ),
  'node-redis': (port) => connectNodeRedis(port, { username, password }),
};

test('docs/stores.md grants the rights for the prefix that its snippet uses', () => {
  expect(page).toContain(`{ prefix: '${prefix}' }`);
});

describe.each(Object.entries(clients))('with the rights that docs/stores.md grants, on %s', (_name, connect) => {
  let store: Required<CallbackStore>;
  beforeAll(async () => {
    const server = await startRedis();
    await restrict(server);
    const { client, close } = await connect(server.port);
    store = redisStore(client, { prefix });
    return async () => {
      await close();
      await server.stop();
    };
  });

  test.concurrent.each(storeContract)('$title', ({ check }) => check(store));
});

describe('with the rights that docs/stores.md grants for a Cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    const started = (cluster = await startRedisCluster());
    await Promise.all(started.servers.map((server) => restrict(server, ...clusterRights.split(' '))));
    return () => started.stop();
  });

  test.each(Object.entries(clientsOfACluster))(
    '%s claims, renews and settles on a Cluster with the rights of docs/stores.md',
    async (_name, connect) => {
      const { client, close } = await connect(cluster, { username, password });
      onTestFinished(() => void close());
      const store = redisStore(client, { prefix });
      // Enough to reach each of the three nodes.
      for (let run = 0; run < 20; run += 1) {
        const claim = await claimFree(store, crypto.randomUUID());
        expect(await claim.renew()).toBe(true);
        expect(await claim.settle()).toEqual({ overlapped: false });
      }
    },
  );
});

describe('each right that docs/stores.md grants is needed', () => {
  test.each<[string, (store: CallbackStore, claim: Claim) => Promise<unknown>]>([
    ['set', (_store, claim) => claim.settle()],
    ['get', (store) => store.claim('held', { token: 'b', fingerprint: '', leaseMs: 10_000, retentionMs: 10_000 })],
    ['eval', (_store, claim) => claim.renew()],
    ['pexpire', (_store, claim) => claim.renew()],
    ['del', (_store, claim) => claim.release()],
  ])('the store rejects with the reason of the server if the user lacks +%s', async (right, call) => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    await restrict(server);
    const { client, close } = await (clients['ioredis 6'] ?? expect.fail())(server.port);
    onTestFinished(() => void close());
    const store = redisStore(client, { prefix });
    const claim = await claimFree(store, 'held');
    await server.command('acl', 'setuser', username, `-${right}`);
    await expect(call(store, claim)).rejects.toThrow(/no permissions to run|can't run this command/);
    expect(await server.command('get', `${prefix}held`)).toBe('claimed a');
  });
});

async function claimFree(store: CallbackStore, id: string): Promise<Claim> {
  const claimed = await store.claim(id, { token: 'a', fingerprint: 'f', leaseMs: 10_000, retentionMs: 10_000 });
  return claimed.state === 'claimed' ? claimed.claim : expect.fail(claimed.state);
}
