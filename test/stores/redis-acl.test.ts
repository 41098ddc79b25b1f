import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { redisStore, type CallbackStore, type Claim } from 'transfer-callbacks';
import {
  clientsOfACluster,
  closing,
  connectNodeRedis,
  ioredisFamily,
  type Connected,
} from '../support/servers/redis-clients.js';
import { startRedisCluster, type RedisServer } from '../support/servers/redis.js';
import { claimFree, fingerprint, request } from './support.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

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

/** Sends each command of the store, to each node of a Cluster. */
async function useAll({ client, close }: Connected): Promise<void> {
  onTestFinished(() => void close());
  const store = redisStore(client, { prefix });
  for (let run = 0; run < 20; run += 1) {
    const id = crypto.randomUUID();
    await (await claimFree(store, {}, id)).release();
    const claim = await claimFree(store, {}, id);
    expect(await claim.renew()).toBe(true);
    expect((await store.claim(id, { ...request, token: 'another' })).state).toBe('in_progress');
    expect(await claim.settle()).toEqual({ overlapped: false });
    expect(await store.read(id)).toMatchObject({ state: 'handled', expiresAt: expect.any(Date) as Date });
    expect(await store.forget(id, fingerprint)).toBe(true);
  }
}

test.each(Object.entries(clients))('the rights that docs/stores.md grants are enough on %s', async (_name, connect) => {
  const server = await startRedisForTest();
  await restrict(server);
  await useAll(await connect(server.port));
});

test('the rights that docs/stores.md grants for a Cluster are enough on every client', async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  await Promise.all(cluster.servers.map((server) => restrict(server, ...clusterRights.split(' '))));
  for (const connect of Object.values(clientsOfACluster)) {
    await useAll(await connect(cluster, { username, password }));
  }
});

describe('each right that docs/stores.md grants is needed', () => {
  test.each<[string, (store: CallbackStore, claim: Claim) => Promise<unknown>]>([
    ['set', (_store, claim) => claim.settle()],
    ['get', (store) => store.claim('held', { ...request, token: 'b' })],
    ['eval', (_store, claim) => claim.renew()],
    ['pexpire', (_store, claim) => claim.renew()],
    ['del', (_store, claim) => claim.release()],
  ])('the store rejects with the reason of the server if the user lacks +%s', async (right, call) => {
    const server = await startRedisForTest();
    await restrict(server);
    const { client, close } = await (clients['ioredis 6'] ?? expect.fail())(server.port);
    onTestFinished(() => void close());
    const store = redisStore(client, { prefix });
    const claim = await claimFree(store, {}, 'held');
    await server.command('acl', 'setuser', username, `-${right}`);
    await expect(call(store, claim)).rejects.toThrow(/no permissions to run|can't run this command/);
    expect(await server.command('get', `${prefix}held`)).toBe('claimed the-token');
  });
});
