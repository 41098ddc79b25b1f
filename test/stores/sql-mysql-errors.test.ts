// The numbers of the errors of MariaDB, as libraries wrap them. The libraries themselves: test/sql, once a week.
import { createConnection, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore, sqlStore } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { beginWith, select, startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { inTransaction } from '../support/helpers/transactions.js';
import { claimFree, requestOf } from './support.js';

const database = startClaimDatabaseForFile();

interface Tx {
  query(sql: string): Promise<unknown>;
}

interface ServerError extends Error {
  readonly errno: number;
}

type Wrap = (error: ServerError) => unknown;

/** The store of a library that wraps the errors of mysql2. */
function storeThatWraps(wrap: Wrap, pool: Pool = database.connect()) {
  const wrapped = async (sent: Promise<unknown>): Promise<unknown> =>
    sent.catch((error: unknown) => {
      throw wrap(error as ServerError);
    });
  return sqlStore<Tx>({
    dialect: 'mysql',
    query: (sql, tx) => tx?.query(sql) ?? wrapped(pool.query(sql)),
    transaction: (work) =>
      inTransaction(pool, (connection) => work({ query: (sql) => wrapped(connection.query(sql)) })),
  });
}

test.each<[string, Wrap]>([
  ['as it is', (error) => error],
  ['as `cause` of a `cause`', (cause) => new Error('query', { cause: new Error('driver', { cause }) })],
  ['as `parent`', (parent) => Object.assign(new Error('query'), { parent })],
  ['in its text', ({ errno }) => new Error(`Raw query failed. Code: \`${errno}\`. Message: \`N/A\``)],
  ['behind a number of the system', (cause) => Object.assign(new Error('socket'), { errno: -104, cause })],
])(
  'of a library that has the error of the server %s a claim that is held is in progress, one that has ended is granted anew, and `autocommit` of 0 is named',
  async (_how, wrap) => {
    const id = crypto.randomUUID();
    const [store, other] = [storeThatWraps(wrap), storeThatWraps(wrap)];
    await database.admin.query(`INSERT INTO transfer_callbacks VALUES ('${id}', 'x', 'old', 'old', 'facts', 0, 1, 1)`);
    const claim = await claimFree(store, {}, id);
    expect(await other.claim(id, requestOf('copy'))).toEqual({ state: 'in_progress' });
    expect((await other.read(id)).state).toBe('claimed');
    expect(await other.forget(id, 'facts')).toBe(false);
    await claim.settle();
    expect((await other.claim(id, requestOf('copy'))).state).toBe('handled');
    expect(await select(database.admin, `SELECT event FROM transfer_callbacks WHERE id = '${id}'`)).toEqual([
      { event: Buffer.from('') },
    ]);
    const unusable = storeThatWraps(wrap, beginWith(database.connect(), 'SET autocommit = 0'));
    await expect(unusable.claim(id, requestOf('a'))).rejects.toMatchObject({ code: 'STORE_REPLY_UNEXPECTED' });
  },
);

test('the writes of a handler after a deadlock that it has swallowed are not kept, and the error names the likely cause', async () => {
  const [id, first, second] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  const rival = await createConnection(database.url);
  onTestFinished(() => {
    rival.destroy();
  });
  const lockAll = (...names: string[]) => rival.query('INSERT INTO locked VALUES ?', [names.map((name) => [name])]);
  await rival.beginTransaction();
  // InnoDB ends the transaction that has written less.
  await lockAll(second, ...Array.from({ length: 200 }, () => crypto.randomUUID()));
  const store = storeThatWraps((error) => error);
  const claim = await claimFree(store, {}, id);
  const lock = (name: string) => claim.tx.query(`INSERT INTO locked VALUES ('${name}')`);
  await lock(first);
  const waiting = lock(second).catch(() => 'the victim');
  await lockAll(first);
  expect(await waiting).toBe('the victim');
  await claim.tx.query(`INSERT INTO written VALUES ('${id}')`);
  await expect(claim.settle()).rejects.toThrow('by an error that the handler has not rethrown, such as a deadlock');
  expect(await database.transaction.count(id)).toBe(0);
});

test.each<[string, Wrap]>([
  ['that is no deadlock', (error) => error],
  ['that is nothing', () => undefined],
  ['with a code of the system', () => Object.assign(new Error('socket'), { errno: -104, code: 'ECONNRESET' })],
])('an error %s ends no transaction, and a handler that swallows it is handled', async (_what, wrap) => {
  const id = crypto.randomUUID();
  const claim = await claimFree(storeThatWraps(wrap), {}, id);
  await claim.tx.query('SELECT * FROM not_there').catch(() => undefined);
  await claim.tx.query(`INSERT INTO written VALUES ('${id}')`);
  await claim.settle();
  expect([await database.transaction.count(id), (await mysqlStore(database.admin).read(id)).state]).toEqual([
    1,
    'handled',
  ]);
});

test('a connection whose settings cannot be restored does not go back, and the app loses no write of its own', async () => {
  const pool = database.connect({ connectionLimit: 2 });
  let isFaulty = true;
  const store = sqlStore<PoolConnection>({
    dialect: 'mysql',
    query: (sql, tx) => {
      if (isFaulty && /^(SET @tc_left = .* @tc_got = RELEASE|KILL)/.test(sql))
        throw new Error('a fault of the library');
      return (tx ?? pool).query(sql);
    },
    transaction: (work) => inTransaction(pool, work),
  });
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await claim.tx.query(`INSERT INTO written VALUES ('${id}')`);
  await claim.release();
  const own = Array.from({ length: 20 }, () => crypto.randomUUID());
  await Promise.all(own.map((name) => pool.query('INSERT INTO written VALUES (?)', [name])));
  expect(await Promise.all(own.map((name) => database.transaction.count(name)))).toEqual(own.map(() => 1));
  isFaulty = false;
  // Both of them can be had again.
  const connections = await Promise.all([pool.getConnection(), pool.getConnection()]);
  for (const connection of connections) connection.release();
  await database.expectRestored(pool);
  expect(await database.transaction.count(id)).toBe(0);
});
