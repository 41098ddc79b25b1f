import { Redis } from 'ioredis';
import { redisStore, type CallbackStore, type InspectableStore } from 'transfer-callbacks';
import { inspectionContract, type InspectionCheck } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { startRedis, type RedisServer } from '../support/redis.js';
import { brokenForgets } from './broken-forgets.js';
import { brokenReads } from './broken-reads.js';
import { besideBusyLoop } from './busy-loop.js';
import { changed } from './changed-inspections.js';

const brokenInspections = [...brokenReads, ...brokenForgets];

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** Resolves with what the check with this title says of a store, or `undefined` if nothing. */
async function findFault(
  title: string,
  store: InspectableStore,
  other?: InspectableStore,
): Promise<string | undefined> {
  const found = inspectionContract.find((each) => each.title === title) ?? expect.fail(`There is no check "${title}".`);
  return found.check(store, other).then(
    () => undefined,
    (error: unknown) => String(error),
  );
}

/** A right store that knows nothing but the state and the fingerprint. */
function laconic(store: InspectableStore): InspectableStore {
  return {
    ...store,
    async read(key) {
      const record = await store.read(key);
      return record.state === 'settled'
        ? { state: 'settled', fingerprint: record.fingerprint }
        : { state: record.state };
    },
  };
}

describe('the inspection contract accepts', () => {
  test.concurrent.each(inspectionContract)('a store that shows all that it can: $title', ({ check }) =>
    check(redisStore(redis)),
  );
  test.concurrent.each(inspectionContract)('a store that shows no more than it must: $title', ({ check }) =>
    check(laconic(redisStore(redis))),
  );
});

test('the inspection contract accepts a right store beside a busy event loop', async () => {
  const faults = await besideBusyLoop(60, () =>
    Promise.all(inspectionContract.map(({ title }) => findFault(title, redisStore(redis)))),
  );
  expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
}, 60_000);

describe('the inspection contract catches', () => {
  const verdicts = new Map<string, Promise<string | undefined>>();
  beforeAll(() => {
    // Concurrently, because most of the time the checks wait for a lease.
    for (const { fault, make, caughtBy } of brokenInspections) verdicts.set(fault, findFault(caughtBy, make()(redis)));
  });

  test.each(brokenInspections)('a store that $fault is caught', async ({ fault, says }) => {
    expect(await verdicts.get(fault)).toMatch(says);
  });
});

test('a store that reads the claims of its own process only is caught by a second object, and not by one', async () => {
  const make = changed((store) => {
    const own = new Set<string>();
    return {
      claim: (key, request) => store.claim(key, request).finally(() => own.add(key)),
      read: (key) => (own.has(key) ? store.read(key) : Promise.resolve({ state: 'free' })),
    };
  });
  const title =
    'a settled callback is read with the fingerprint of its claim, and with times that enclose the settling';
  expect(await findFault(title, make(redis))).toBeUndefined();
  expect(await findFault(title, make(redis), make(redis))).toMatch(/a settled callback is free/);
});

test('each check of the inspection contract catches a broken store', () => {
  const caught = new Set(brokenInspections.map(({ caughtBy }) => caughtBy));
  expect([...caught].sort()).toEqual(inspectionContract.map(({ title }) => title).sort());
});

test('a store without `read` and `forget` does not compile in the inspection contract', () => {
  expectTypeOf<InspectableStore<{ tx: 1 }>>().toExtend<Parameters<InspectionCheck['check']>[0]>();
  expectTypeOf<CallbackStore>().not.toExtend<Parameters<InspectionCheck['check']>[0]>();
});
