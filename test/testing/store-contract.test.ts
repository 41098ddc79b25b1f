import type { Pool } from 'pg';
import { memoryStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { blockEventLoop } from '../support/helpers/runtime.js';
import { contractTransaction } from '../support/servers/postgres.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';
import { brokenInspections } from './broken-inspections.js';
import { brokenMemoryStores } from './broken-memory-stores.js';
import { brokenPairs } from './broken-processes.js';
import { brokenRedisStores, changedRedisStore } from './broken-redis-stores.js';
import { brokenRefunds, claimingBoth } from './broken-refunds.js';
import { brokenTransactions, transactionStore, type Tx } from './broken-transactions.js';
import { changedStore, findCheck } from './changed-stores.js';

const own = startRedisForFile();

/** What the check whose title begins so says of a store, or `undefined` if nothing. */
async function faultFound(title: string, store: CallbackStore, other?: CallbackStore): Promise<string | undefined> {
  try {
    await findCheck(title).check(store, { other });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

async function faultsFound(store: CallbackStore, other?: CallbackStore): Promise<(string | undefined)[]> {
  const found = await Promise.all(storeContract.map(({ title }) => faultFound(title, store, other)));
  return found.filter((fault) => fault !== undefined);
}

/** A store that replies to each call after `fromMs` to `toMs`, and acts half way. */
function slow(store: CallbackStore, fromMs = 50, toMs = 150): CallbackStore {
  let calls = 0;
  const wait = (): Promise<unknown> => {
    const jitter = (((calls += 1) * 37) % 100) / 100;
    return new Promise((resolve) => setTimeout(resolve, (fromMs + jitter * (toMs - fromMs)) / 2));
  };
  const late = async <T>(call: () => Promise<T>): Promise<T> => {
    await wait();
    try {
      return await call();
    } finally {
      await wait();
    }
  };
  return {
    claim: (key, request) =>
      late(async () => {
        const reply = await store.claim(key, request);
        if (reply.state !== 'claimed') return reply;
        const { claim } = reply;
        return {
          state: 'claimed',
          claim: {
            tx: undefined,
            renew: () => late(() => claim.renew()),
            settle: () => late(() => claim.settle()),
            release: () => late(() => claim.release()),
          },
        };
      }),
  };
}

/** Runs `work` while the event loop is blocked for `blockedMs` at a time, half of the time. */
async function besideBusyLoop<T>(blockedMs: number, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(blockEventLoop, 2 * blockedMs, blockedMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** A right store that knows nothing but the state and the fingerprint. */
function laconic(store: Required<Omit<CallbackStore, 'check'>>): CallbackStore {
  return {
    ...store,
    async read(key, name) {
      const record = await store.read(key, name);
      return record.state === 'handled'
        ? { state: 'handled', fingerprint: record.fingerprint }
        : { state: record.state };
    },
  };
}

/** A right store whose columns for `event` and `externalId` are NOT NULL, and hold only what the receiver passes. */
function requiring(store: CallbackStore): CallbackStore {
  return changedStore(store, {
    request(request) {
      if (!/^transfer\.(success|failed)$/.test(request.event ?? '')) throw new Error(`event is ${request.event}`);
      if (request.externalId === undefined) throw new Error('externalId is null');
      return request;
    },
  });
}

describe('the store contract accepts', () => {
  test.concurrent.each<[string, () => CallbackStore]>([
    ['a store that has `claim` only', () => ({ claim: memoryStore().claim })],
    ['a store that shows no more than it must', () => laconic(redisStore(own.redis))],
    ['the Redis store, behind changes that change nothing', () => changedRedisStore(own.redis, {})],
    ['a store that requires `event` and `externalId`', () => requiring(memoryStore())],
    ['a store whose claims may have both records', () => claimingBoth()],
  ])('every check accepts %s', async (_name, make) => {
    expect(await faultsFound(make())).toEqual([]);
  });

  test('every check accepts two objects on the same data', async () => {
    const data = memoryStore();
    expect(await faultsFound(changedStore(data, {}), changedStore(data, {}))).toEqual([]);
  });

  test.each([
    ['a fast store', () => memoryStore()],
    ['a store that is a server', () => redisStore(own.redis)],
    ['a store that replies after 50 to 150 ms', () => slow(memoryStore())],
  ])(
    'every check accepts %s beside a busy event loop',
    async (_name, make) => {
      expect(await besideBusyLoop(60, () => faultsFound(make()))).toEqual([]);
    },
    60_000,
  );
});

const groups = [
  ['broken memory stores', [...brokenMemoryStores, ...brokenRefunds]],
  ['broken Redis stores', brokenRedisStores],
  ['stores with a broken `read` or `forget`', brokenInspections],
] as const;
describe.each(groups)('%s', (_group, brokenStores) => {
  const verdicts = new Map<string, Promise<(string | undefined)[]>>();
  beforeAll(() => {
    // All together, because most of the time they wait for a lease.
    for (const { fault, make, caughtBy } of brokenStores) {
      const store = make(own.redis);
      verdicts.set(fault, Promise.all(caughtBy.map((title) => faultFound(title, store))));
    }
  });

  for (const { fault, caughtBy, says } of brokenStores) {
    test(`a store that ${fault} is caught`, async () => {
      expect(await verdicts.get(fault)).toEqual(caughtBy.map(() => expect.stringMatching(says) as string));
    });
  }
});

for (const { fault, make, caughtBy, says } of brokenPairs) {
  test(`a store that ${fault} is caught by a second object, and not by one`, async () => {
    for (const title of caughtBy) {
      expect(await faultFound(title, make()[0])).toBeUndefined();
      expect(await faultFound(title, ...make())).toMatch(says);
    }
  });
}

test.concurrent.each([
  [50, 150],
  // Its first claim after the lease has lapsed is granted when a right store would grant it too.
  [600, 600],
])('a broken store is caught even if it replies after %i to %i ms', async (fromMs, toMs) => {
  const short = changedStore(memoryStore(), { request: (asked) => ({ ...asked, leaseMs: 700 }) });
  expect(await faultFound('a lease that is not renewed', slow(short, fromMs, toMs))).toMatch(
    /a lease of \d+ ms lasted only \d+ ms/,
  );
});

test.concurrent('a lease that is too long is caught even if the process is stopped while it ends', async () => {
  const long = changedStore(memoryStore(), { request: (asked) => ({ ...asked, leaseMs: asked.leaseMs * 2 }) });
  setTimeout(blockEventLoop, 2_400, 700);
  expect(await faultFound('a lease that is not renewed', long)).toMatch(/a lease of \d+ ms never ended/);
});

let pool: Pool;
let transaction: StoreTransaction<Tx>;
startPostgresForFile(async (server) => {
  pool = server.pool({ max: 100 });
  // A store of `brokenTransactions` refuses this text.
  transaction = { ...(await contractTransaction(pool)), rollback: (tx) => tx.query('ROLLBACK') };
});

/** A store that settles beside the transaction. */
const besideTransaction = (): CallbackStore<Tx> =>
  transactionStore(pool, brokenTransactions.find(({ caughtBy }) => caughtBy.length === 4)?.change);

describe('the store contract accepts a store whose handlers write in a transaction', () => {
  test.concurrent.each(storeContract)('$title', ({ check }) => check(transactionStore(pool), { transaction }));
});

for (const { fault, change, caughtBy, says } of brokenTransactions) {
  test.concurrent.each(caughtBy)(`a store that ${fault} is caught: %s`, async (title) => {
    await expect(findCheck(title).check(transactionStore(pool, change), { transaction })).rejects.toThrow(says);
  });
}

test('a transactional store is refused without `write` and `count`', async () => {
  const message = containing('check(store, { transaction: {');
  for (const options of [{}, { transaction: { write: () => Promise.resolve() } as never }]) {
    const checked = findCheck('a write through `tx` is kept').check(transactionStore(pool), options);
    await expect(checked).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  }
});

test('a store that is not transactional needs no `transaction`, and is checked as any other if it gets one', async () => {
  const { check } = findCheck("a late holder's write");
  await check(memoryStore());
  const store = { ...besideTransaction(), transactional: false };
  await expect(check(store, { transaction })).rejects.toThrow(/2 were kept/);
});

test.each(['a handler that swallows a failed', 'a handler that rolls', 'a handler that swallows a deadlock'])(
  'without its step a check passes: %s',
  async (title) => {
    const without: StoreTransaction<Tx> = {
      write: (tx, key) => transaction.write(tx, key),
      count: (key) => transaction.count(key),
    };
    await findCheck(title).check(besideTransaction(), { transaction: without });
  },
);

test('a step that does not do what it is for is reported', async () => {
  const done = (): Promise<void> => Promise.resolve();
  const idle = { ...transaction, fail: done, lock: done };
  for (const [title, says] of [
    ['a handler that swallows a failed', /`fail` was to reject/],
    ['a handler that swallows a deadlock', /met no deadlock/],
  ] as const) {
    await expect(findCheck(title).check(transactionStore(pool), { transaction: idle })).rejects.toThrow(says);
  }
});

test('each check of the store contract catches a broken store', () => {
  const caught = new Set(
    [...groups.flatMap(([, stores]) => stores), ...brokenTransactions].flatMap(({ caughtBy }) => caughtBy),
  );
  expect([...caught].map((title) => findCheck(title).title).sort()).toEqual(
    storeContract.map(({ title }) => title).sort(),
  );
});
