import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { redisStore, type CallbackStore, type Claim } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import {
  clientsOfACluster,
  clientsOfOneServer,
  connectNodeRedis,
  type Connected,
  closing,
  ioredisFamily,
} from '../support/servers/redis-clients.js';
import { startRedisCluster, type RedisCluster, type RedisServer } from '../support/servers/redis.js';
import { findCheck } from '../testing/changed-stores.js';
import { claimFree, fingerprint, request } from './support.js';
import { connectForTest, startRedisForFile, startRedisForTest } from '../support/servers/redis-for-file.js';

const own = startRedisForFile();
let cluster: RedisCluster;
beforeAll(async () => {
  const started = (cluster = await startRedisCluster());
  return () => started.stop();
});

/** A check for each reply that another client may write in another way. The first is a claim whose reply was lost. */
const replies = [
  'a claim that is sent twice',
  'the store replies to every claim',
  'a renewed lease',
  "a late holder's success is kept and",
  'a claimed callback is read',
  'of fifty concurrent calls of forget',
].map(findCheck);

function testStoreOn(connect: () => Connected | Promise<Connected>, checks: typeof storeContract = replies): void {
  let store: Required<Omit<CallbackStore, 'check'>>;
  beforeAll(async () => {
    const { client, close } = await connect();
    store = redisStore(client);
    return () => close();
  });

  test.concurrent.each(checks)('$title', ({ check }) => check(store));
}

describe('two stores on one server, with ioredis and with node-redis', () => {
  let store: Required<Omit<CallbackStore, 'check'>>;
  let other: Required<Omit<CallbackStore, 'check'>>;
  beforeAll(async () => {
    const { client, close } = await connectNodeRedis(own.server.port);
    store = redisStore(own.redis);
    other = redisStore(client);
    return close;
  });

  test.concurrent.each(storeContract)('$title', ({ check }) => check(store, { other }));

  test('a lease is renewed and released although the server has forgotten all scripts', async () => {
    for (const each of [store, other]) {
      const claim = await claimFree(each);
      await own.server.command('script', 'flush');
      expect(await claim.renew()).toBe(true);
      await own.server.command('script', 'flush');
      await expect(claim.release()).resolves.toBeUndefined();
    }
  });
});

describe.each(Object.entries(clientsOfOneServer))('redisStore on one server with %s', (_name, connect) => {
  testStoreOn(() => connect(own.server.port));
});

describe.each(Object.entries(clientsOfACluster))('redisStore on a cluster with %s', (name, connect) => {
  testStoreOn(() => connect(cluster), name === 'ioredis 6' ? storeContract : replies);

  test('every command of the store goes to the node that has its key', async () => {
    const { client, close } = await connect(cluster);
    onTestFinished(() => void close());
    const store = redisStore(client);
    const readMoved = () => Promise.all(cluster.servers.map((each) => each.errors('MOVED')));
    const before = await readMoved();
    const claims = await Promise.all(Array.from({ length: 100 }, () => claimFree(store)));
    for (const claim of claims) expect(await claim.renew()).toBe(true);
    await Promise.all(claims.map((claim, index) => (index % 2 === 0 ? claim.settle() : claim.release())));
    for (let run = 0; run < 20; run += 1) {
      const id = crypto.randomUUID();
      await (await claimFree(store, {}, id)).settle();
      expect(await store.read(id)).toMatchObject({ state: 'handled', fingerprint });
      expect(await store.forget(id, fingerprint)).toBe(true);
    }
    expect(await readMoved()).toEqual(before);
  });
});

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

test.each<[string, (store: CallbackStore, claim: Claim) => Promise<unknown>]>([
  ['set', (_store, claim) => claim.settle()],
  ['get', (store) => store.claim('held', { ...request, token: 'b' })],
  ['eval', (_store, claim) => claim.renew()],
  ['pexpire', (_store, claim) => claim.renew()],
  ['del', (_store, claim) => claim.release()],
])('the store rejects with the reason of the server if the user lacks +%s', async (right, call) => {
  const server = await startRedisForTest();
  await restrict(server);
  const store = redisStore(connectForTest(server.port, { username, password }), { prefix });
  const claim = await claimFree(store, {}, 'held');
  await server.command('acl', 'setuser', username, `-${right}`);
  await expect(call(store, claim)).rejects.toThrow(/no permissions to run|can't run this command/);
  expect(await server.command('get', `${prefix}held`)).toBe('claimed the-token');
});
