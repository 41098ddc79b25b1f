// The other libraries and MySQL itself: test/sql, once a week.
import { setTimeout } from 'node:timers/promises';
import { once } from 'node:events';
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore, sqlStore } from 'transfer-callbacks';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { beforeAll, expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { startClaimDatabaseForFile, select } from '../support/servers/mysql-claims.js';
import { inTransaction } from '../support/helpers/transactions.js';
import { claimFree, requestOf } from './support.js';

const database = startClaimDatabaseForFile();
let other: Pool;
beforeAll(() => {
  other = createPool({ uri: database.url, connectionLimit: 40 });
  return () => other.end();
});

test.concurrent.each(storeContract)(
  'two stores, each with its own pool of mysql2, keep the contract: $title',
  ({ check }) => check(mysqlStore(database.admin), { other: mysqlStore(other), transaction: database.transaction }),
);

test('of two handlers of one callback only one commits, although its row was committed early and the lock was lost', async () => {
  const id = crypto.randomUUID();
  const late = await claimFree(mysqlStore(database.admin), {}, id);
  // As DDL and procedures commit, and as a proxy may lose the state of a session.
  await late.tx.query('CREATE TABLE IF NOT EXISTS early (name varchar(9))');
  await late.tx.query('DO RELEASE_ALL_LOCKS()');
  await database.transaction.write(late.tx, id);
  const next = await claimFree(mysqlStore(other), { token: 'another' }, id);
  await database.transaction.write(next.tx, id);
  await next.settle();
  await expect(late.settle()).rejects.toMatchObject({ code: 'LEASE_LOST' });
  expect(await late.renew()).toBe(false);
  expect(await database.transaction.count(id)).toBe(1);
  expect(await mysqlStore(database.admin).read(id)).toMatchObject({ state: 'handled', delivery: 'another' });
});

interface Nesting {
  readonly connection: PoolConnection;
  transaction(work: () => Promise<unknown>): Promise<void>;
}

/** The store of a library that nests transactions by savepoints, as Drizzle, Knex and TypeORM do. */
function nestingStore() {
  const nest = async (connection: PoolConnection, work: () => Promise<unknown>): Promise<void> => {
    await connection.query('SAVEPOINT nested');
    try {
      await work();
      await connection.query('RELEASE SAVEPOINT nested');
    } catch (error) {
      await connection.query('ROLLBACK TO SAVEPOINT nested');
      throw error;
    }
  };
  return sqlStore<Nesting>({
    dialect: 'mysql',
    query: (sql, tx) => (tx?.connection ?? database.admin).query(sql),
    transaction: (work) =>
      inTransaction(database.admin, (connection) =>
        work({ connection, transaction: (inner) => nest(connection, inner) }),
      ),
  });
}

test('a nested transaction that a handler has left running, and that fails, does not take the record back', async () => {
  const store = nestingStore();
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await database.transaction.write(claim.tx.connection, id);
  const left = claim.tx.transaction(async () => {
    await claim.tx.connection.query('SELECT SLEEP(0.2)');
    throw new Error('the nested part fails');
  });
  left.catch(() => undefined);
  await claim.settle();
  expect(await database.transaction.count(id)).toBe(1);
  expect(await store.read(id)).toMatchObject({ state: 'handled' });
});

test('a handler whose nested transaction does not end is rolled back', async () => {
  const store = nestingStore();
  const id = crypto.randomUUID();
  const claim = await claimFree(store, { timeoutMs: 400 }, id);
  await database.transaction.write(claim.tx.connection, id);
  claim.tx.transaction(() => new Promise(() => undefined)).catch(() => undefined);
  await expect(claim.settle()).rejects.toThrow('rolled back');
  expect(await database.transaction.count(id)).toBe(0);
});

test('callbacks that have waited long for the only connection are handled, without a second one to renew their leases', async () => {
  const pool = database.connect({ connectionLimit: 1 });
  const receiver = receiverOf({
    store: mysqlStore(pool),
    leaseMs: 6_000,
    storeTimeoutMs: 1_900,
    onSuccess: () => setTimeout(900),
  });
  const ended = await Promise.all(Array.from({ length: 4 }, () => receiver.receive(transferSucceeded())));
  expect(ended.map(({ outcome }) => outcome)).toEqual(Array(4).fill('processed'));
});

test('a claim is granted although the reply to the beginning of its transaction was lost', async () => {
  const { pool, proxy } = await database.connectThroughProxy();
  proxy.lose('reply', 'SET @tc_left');
  const id = crypto.randomUUID();
  const claim = await claimFree(mysqlStore(pool), {}, id);
  expect(proxy.lost()).toBe(1);
  await database.transaction.write(claim.tx, id);
  expect(await claim.settle()).toEqual({ overlapped: false });
  expect(await database.transaction.count(id)).toBe(1);
});

test('a callback whose commit succeeded but whose reply was lost is found handled', async () => {
  const { pool, proxy } = await database.connectThroughProxy();
  const id = crypto.randomUUID();
  const store = mysqlStore(pool);
  const claim = await claimFree(store, {}, id);
  await database.transaction.write(claim.tx, id);
  proxy.lose('reply', 'SET @tc_held');
  expect(await claim.settle()).toEqual({ overlapped: false });
  expect([proxy.lost(), await database.transaction.count(id)]).toEqual([1, 1]);
  expect((await store.claim(id, requestOf('b'))).state).toBe('handled');
});

test('prune deletes old records in batches, and keeps the others', async () => {
  const store = mysqlStore(database.admin, { table: 'pruned' });
  await store.migrate();
  await database.admin.query(
    `INSERT INTO pruned SELECT CONCAT('id-', seq), '', '', '', '', 0, 1, 1 FROM seq_1_to_2500`,
  );
  const id = crypto.randomUUID();
  await (await claimFree(store, {}, id)).settle();
  expect(await store.prune({ olderThanMs: 90_001 })).toBe(2_500);
  expect((await store.read(id)).state).toBe('handled');
});

// What becomes of a claim whose connection ends. Old code does it in a `finally`: mysql2 would give one of a pool back
// then, in the middle of the transaction.
/** What mysql2 has, and its types do not. */
interface Untyped extends AsyncDisposable {
  end(callback?: (value: unknown) => void): unknown;
  release(): unknown;
}

test.each<[string, (tx: Untyped) => unknown]>([
  ['end()', (tx) => tx.end()],
  ['end(callback)', (tx) => new Promise((resolve) => void tx.end(resolve))],
  ['release()', (tx) => tx.release()],
  ['await using', (tx) => tx[Symbol.asyncDispose]()],
])(
  'a handler that ends its connection by %s keeps its transaction, and takes no write of the app with it',
  async (_way, end) => {
    const { connect, transaction } = database;
    const pool = connect({ connectionLimit: 1 });
    const ofApp: Promise<unknown>[] = [];
    const receiver = receiverOf({
      store: mysqlStore(pool),
      async onSuccess({ data }, { tx }) {
        await transaction.write(tx, data.id);
        await end(tx);
        const writing = pool.query('INSERT INTO written VALUES (?)', [`app ${data.id}`]);
        ofApp.push(writing);
        // The app's write needs less if the pool has the connection again.
        await Promise.race([writing, setTimeout(200)]);
        if (ofApp.length === 1) throw new Error('the first attempt fails');
      },
    });
    const callback = transferSucceeded();
    const { id } = callback.data;
    for (const [outcome, written] of [
      ['handler_failed', 0],
      ['processed', 1],
    ] as const) {
      expect((await receiver.receive(callback)).outcome).toBe(outcome);
      await Promise.all(ofApp);
      expect(await transaction.count(id)).toBe(written);
      expect(await transaction.count(`app ${id}`)).toBe(ofApp.length);
    }
    await database.expectRestored(pool);
  },
);

test('a connection that the server ends under a handler aborts it immediately and keeps nothing of it, and the next delivery is processed', async () => {
  const pool = database.connect({ connectionLimit: 1 });
  const leaseMs = 29_000;
  const noticed: unknown[] = [];
  const receiver = receiverOf({
    store: mysqlStore(pool),
    leaseMs,
    async onSuccess({ data }, { tx, signal }) {
      await database.transaction.write(tx, data.id);
      if (noticed.length > 0) return;
      const [session] = await select(tx, 'SELECT CONNECTION_ID() AS id');
      const aborted = once(signal, 'abort');
      const endedAt = performance.now();
      await database.admin.query(`KILL ${session?.id}`);
      await aborted;
      noticed.push(signal.reason, performance.now() - endedAt < leaseMs / 6);
    },
  });
  const callback = transferSucceeded();
  expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
  expect(noticed).toMatchObject([{ code: 'LEASE_LOST' }, true]);
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(await database.transaction.count(callback.data.id)).toBe(1);
});

test('a claim leaves no listener on its connection', async () => {
  const pool = database.connect({ connectionLimit: 1 });
  const countListeners = async (): Promise<number> => {
    const taken = await pool.getConnection();
    taken.release();
    return taken.connection.listenerCount('error');
  };
  const before = await countListeners();
  for (const end of ['settle', 'release', 'release'] as const) await (await claimFree(mysqlStore(pool)))[end]();
  expect(await countListeners()).toBe(before);
});

const claimRecord = (id: string, record?: 'reversal' | 'both') => claimFree(mysqlStore(database.admin), { record }, id);

test.each(['reversed\u001f', ''])('a claim of both records whose row %j is gone commits nothing', async (prefix) => {
  const store = mysqlStore(database.admin);
  const id = crypto.randomUUID();
  const both = await claimRecord(id, 'both');
  await database.transaction.write(both.tx, id);
  await both.tx.query('DELETE FROM transfer_callbacks WHERE id = ?', [Buffer.from(prefix + id)]);
  await expect(both.settle()).rejects.toThrow();
  expect(await database.transaction.count(id)).toBe(0);
  for (const record of [undefined, 'reversal'] as const) {
    expect(await store.read(id, record)).toEqual({ state: 'free' });
  }
});

test('a refund is read as claimed while it is, and not while its transfer alone is claimed', async () => {
  const store = mysqlStore(database.admin);
  const id = crypto.randomUUID();
  const transfer = await claimRecord(id);
  expect(await store.read(id)).toMatchObject({
    state: 'claimed',
    by: expect.stringMatching(/^connection \d+$/) as string,
  });
  expect(await store.read(id, 'reversal')).toEqual({ state: 'free' });
  await transfer.settle();
  const refund = await claimRecord(id, 'reversal');
  expect(await store.read(id)).toMatchObject({ state: 'handled' });
  expect(await store.read(id, 'reversal')).toMatchObject({ state: 'claimed' });
  // What commits early leaves a row that nobody has locked.
  await refund.tx.query('CREATE TABLE IF NOT EXISTS early_refund (name varchar(9))');
  expect(await store.read(id, 'reversal')).toMatchObject({ state: 'claimed' });
  await refund.release();
  expect(await store.read(id, 'reversal')).toEqual({ state: 'free' });
});

test('prune tries once more after a deadlock, and rejects if it is one again', async () => {
  const sent: string[] = [];
  let deadlocks = 1;
  const store = sqlStore({
    dialect: 'mysql',
    async query(sql) {
      if (sql.startsWith('DELETE')) {
        sent.push(sql);
        if (sent.length <= deadlocks) throw Object.assign(new Error('Deadlock found'), { errno: 1213 });
      }
      return database.admin.query(sql);
    },
    transaction: () => Promise.reject(new Error('not used')),
  });
  const insert = () =>
    database.admin
      .query(`INSERT INTO transfer_callbacks (id, token, event, external_id, fingerprint, claimed_at, handled_at, expires_at)
      VALUES ('${crypto.randomUUID()}', '', '', '', 'facts', 1, 1, 2)`);
  await insert();
  expect(await store.prune({ olderThanMs: 90_001 })).toBe(1);
  expect(sent).toHaveLength(2);
  await insert();
  [sent.length, deadlocks] = [0, 2];
  await expect(store.prune({ olderThanMs: 90_001 })).rejects.toThrow('Deadlock found');
});
