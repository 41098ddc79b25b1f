import { Redis } from 'ioredis';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { redisStore, type CallbackStore } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import {
  clientsOfACluster,
  clientsOfOneServer,
  connectNodeRedis,
  type Connected,
} from '../support/servers/redis-clients.js';
import { startRedis, startRedisCluster, type RedisCluster, type RedisServer } from '../support/servers/redis.js';
import { findCheck } from '../testing/changed-stores.js';
import { claimFree, fingerprint } from './support.js';

let server: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  const started = (server = await startRedis());
  return () => started.stop();
});
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
    const one = new Redis(server.url);
    const two = await connectNodeRedis(server.port);
    store = redisStore(one);
    other = redisStore(two.client);
    return () => {
      one.disconnect();
      two.close();
    };
  });

  test.concurrent.each(storeContract)('$title', ({ check }) => check(store, { other }));

  test('a lease is renewed and released although the server has forgotten all scripts', async () => {
    for (const each of [store, other]) {
      const claim = await claimFree(each);
      await server.command('script', 'flush');
      expect(await claim.renew()).toBe(true);
      await server.command('script', 'flush');
      await expect(claim.release()).resolves.toBeUndefined();
    }
  });
});

describe.each(Object.entries(clientsOfOneServer))('redisStore on one server with %s', (_name, connect) => {
  testStoreOn(() => connect(server.port));
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
