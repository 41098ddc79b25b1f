// The other libraries and MySQL itself: test/sql, once a week.
import { setTimeout } from 'node:timers/promises';
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore, sqlStore } from 'transfer-callbacks';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { inTransaction } from '../support/helpers/transactions.js';
import { claimFree, requestOf } from './support.js';

const database = startClaimDatabaseForFile();
let other: Pool;
beforeAll(() => {
  other = createPool({ uri: database.url, connectionLimit: 40 });
  return () => other.end();
});

describe('two stores on MariaDB, each with its own pool of mysql2, keep the contract', () => {
  test.concurrent.each(storeContract)('$title', ({ check }) =>
    check(mysqlStore(database.admin), { other: mysqlStore(other), transaction: database.transaction }),
  );
});

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
