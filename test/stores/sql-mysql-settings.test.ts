// The settings, rights and pools that a server and an app may have, on MariaDB through mysql2.
import type { PoolConnection } from 'mysql2';
import type { Pool } from 'mysql2/promise';
import { mysqlStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { beginWith, select, startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { startMysqlProxyForTest } from '../support/servers/mysql-proxy.js';
import { claimFree, requestOf } from './support.js';

const database = startClaimDatabaseForFile();
beforeAll(async () => {
  await database.admin.query('SET GLOBAL innodb_flush_log_at_trx_commit = 1');
});

test.each(['latin1_swedish_ci', 'gbk_chinese_ci', 'sjis_japanese_ci'])(
  'through a connection with the charset of %s a copy is a duplicate',
  async (charset) => {
    const receiver = receiverOf({
      store: mysqlStore(database.connect({ charset })),
    });
    const callback = transferSucceeded({ externalId: 'é 付款 😀' });
    for (const outcome of ['processed', 'duplicate']) expect((await receiver.receive(callback)).outcome).toBe(outcome);
  },
);

test('a pool without autocommit is refused with a sentence, and a pool in which empty texts are null is not', async () => {
  const unusable = mysqlStore(beginWith(database.connect(), 'SET autocommit = 0'));
  await expect(unusable.claim(crypto.randomUUID(), requestOf('a'))).rejects.toMatchObject({
    code: 'STORE_REPLY_UNEXPECTED',
    message: expect.stringContaining('`autocommit` is 0') as string,
    cause: expect.objectContaining({ errno: 1242 }) as unknown,
  });
  await expect(unusable.read(crypto.randomUUID())).rejects.toMatchObject({ code: 'STORE_REPLY_UNEXPECTED' });
  // What the refused pool has looked at is not locked for others.
  const store = mysqlStore(beginWith(database.connect(), "SET sql_mode = 'EMPTY_STRING_IS_NULL'"));
  const claim = await claimFree(store);
  expect(await claim.settle()).toEqual({ overlapped: false });
});

test.each([{ rowsAsArray: true }, { nestTables: true }, { typeCast: false }])(
  'through a pool with %j a copy is handled, and the record is read',
  async (options) => {
    const store = mysqlStore(database.connect(options));
    const id = crypto.randomUUID();
    await (await claimFree(store, {}, id)).settle();
    expect((await store.claim(id, requestOf('copy'))).state).toBe('handled');
    expect((await store.read(id)).state).toBe('handled');
  },
);

test('the option `schema` serves a pool without a database, and a handler that sends USE', async () => {
  await database.admin.query('CREATE DATABASE elsewhere');
  const pool = database.connect();
  const store = mysqlStore(pool, { schema: 'test' });
  const noDatabase = new URL(database.url);
  noDatabase.pathname = '/';
  const other = mysqlStore(database.connect({ uri: noDatabase.href }), { schema: 'test' });
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await database.transaction.write(claim.tx, id);
  await claim.tx.query('USE elsewhere');
  expect((await other.claim(id, requestOf('copy'))).state).toBe('in_progress');
  await claim.settle();
  expect((await other.claim(id, requestOf('copy'))).state).toBe('handled');
  await database.expectRestored(pool);
});

test('a role that may only read sees records, and a server that is read-only acknowledges what was handled before', async () => {
  const id = crypto.randomUUID();
  await (await claimFree(mysqlStore(database.admin), {}, id)).settle();
  expect((await mysqlStore(database.connect({ user: 'reader' })).read(id)).state).toBe('handled');
  const app = mysqlStore(database.connect({ user: 'app' }));
  await database.admin.query('SET GLOBAL read_only = 1');
  try {
    expect((await app.claim(id, requestOf('copy'))).state).toBe('handled');
    await expect(app.claim(crypto.randomUUID(), requestOf('new'))).rejects.toThrow('read-only');
  } finally {
    await database.admin.query('SET GLOBAL read_only = 0');
  }
});

test('a statement of mysql2 that ends the transaction is refused as an object, too, and a prepared one after the handler', async () => {
  const refused = { code: 'TRANSACTION_CONTROL' };
  const claim = await claimFree(mysqlStore(database.connect()));
  await expect(claim.tx.query({ sql: 'COMMIT' })).rejects.toMatchObject(refused);
  const statement = await claim.tx.prepare('SELECT 1 AS one');
  expect((await statement.execute([]))[0]).toEqual([{ one: 1 }]);
  await claim.settle();
  expect(() => statement.execute([])).toThrow(expect.objectContaining(refused));
});

test('what ends the transaction in the server is refused, also through the connection with callbacks', async () => {
  const refused = { code: 'TRANSACTION_CONTROL' };
  const claim = await claimFree(mysqlStore(database.connect()));
  // Its own type is that of promises.
  const connection = claim.tx.connection as unknown as PoolConnection;
  await expect(claim.tx.changeUser({ database: 'test' })).rejects.toMatchObject(refused);
  await expect(claim.tx.reset()).rejects.toMatchObject(refused);
  const callBack = (call: (callback: (error: unknown, rows?: unknown) => void) => unknown): Promise<unknown> =>
    new Promise((resolve) => {
      call((error, rows) => {
        resolve(error ?? rows);
      });
    });
  expect(await callBack((done) => connection.query('SELECT 1 AS one', done))).toEqual([{ one: 1 }]);
  for (const end of [
    callBack((done) => connection.query('COMMIT', done)),
    callBack((done) => {
      connection.commit(done);
    }),
    callBack((done) => {
      connection.changeUser({ database: 'test' }, done);
    }),
  ]) {
    expect(await end).toMatchObject(refused);
  }
  await claim.settle();
  expect(await callBack((done) => connection.query('SELECT 1', done))).toMatchObject(refused);
});

test('a role that may not lock the row reads the record, and a row that is locked by a claim without its lock is claimed', async () => {
  const uri = await startMysqlProxyForTest(database.url, (text) => (text.includes('NOWAIT') ? 'refuse' : 'pass'));
  const [handled, locked] = [crypto.randomUUID(), crypto.randomUUID()];
  await (await claimFree(mysqlStore(database.admin), {}, handled)).settle();
  expect((await mysqlStore(database.connect({ uri })).read(handled)).state).toBe('handled');

  await database.admin.query(`INSERT INTO transfer_callbacks VALUES ('${locked}', 'x', '', '', 'facts', 0, 1, 1)`);
  const other = await database.connect().getConnection();
  await other.beginTransaction();
  await other.query(`SELECT * FROM transfer_callbacks WHERE id = '${locked}' FOR UPDATE`);
  expect(await mysqlStore(database.admin).read(locked)).toEqual({ state: 'claimed' });
  expect(await mysqlStore(database.admin).forget(locked, 'facts')).toBe(false);
  await other.rollback();
  other.release();
  expect(await mysqlStore(database.admin).read(locked)).toEqual({ state: 'free' });
});

/** What `receiver.check()` resolves with, and what it logs. */
async function check(pool: Pool, options?: Parameters<typeof mysqlStore>[1]) {
  const logger = recordingLogger();
  const checked = await receiverOf({ store: mysqlStore(pool, options), logger }).check();
  return { checked, warnings: logger.lines.map(({ message }) => message) };
}

test('check leaves no record that counts, and warns of an idle time that outlasts the first retry', async () => {
  const live = `SELECT id FROM transfer_callbacks WHERE expires_at > 0`;
  const before = await select(database.admin, live);
  const pool = database.connect();
  expect(await check(pool)).toMatchObject({ checked: { ok: true }, warnings: [] });
  for (const idleTimeoutMs of [30_000, null]) {
    expect(await check(pool, { idleTimeoutMs })).toMatchObject({
      checked: { ok: true },
      warnings: [expect.stringContaining('`idleTimeoutMs` under 30 000')],
    });
  }
  expect(await select(database.admin, live)).toEqual(before);
  await database.expectRestored(pool);
});

test('check warns of a COMMIT that does not wait for the disk', async () => {
  onTestFinished(async () => {
    await database.admin.query('SET GLOBAL innodb_flush_log_at_trx_commit = 1');
  });
  for (const [value, warnings] of [
    [0, [expect.stringContaining('`innodb_flush_log_at_trx_commit` is 0: a crash')]],
    [2, [expect.stringContaining('`innodb_flush_log_at_trx_commit` is 2: a crash')]],
    [3, []],
  ] as const) {
    await database.admin.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${value}`);
    expect(await check(database.connect())).toMatchObject({ checked: { ok: true }, warnings });
  }
});

test('check warns of a binary log that does not wait for the disk, unless InnoDB waits by itself', async () => {
  const uri = await startMysqlProxyForTest(
    database.url,
    () => 'pass',
    (text) => text.replace('@@log_bin', '1'),
  );
  onTestFinished(async () => {
    await database.admin.query('SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 0');
  });
  for (const [log, flush, warnings] of [
    [0, 1, [expect.stringContaining('`sync_binlog` is 0: a crash')]],
    [100, 1, [expect.stringContaining('`sync_binlog` is 100: a crash')]],
    [1, 1, []],
    [0, 3, []],
  ] as const) {
    await database.admin.query(`SET GLOBAL sync_binlog = ${log}, GLOBAL innodb_flush_log_at_trx_commit = ${flush}`);
    expect(await check(database.connect({ uri }))).toMatchObject({ checked: { ok: true }, warnings });
    expect(await check(database.connect())).toMatchObject({ checked: { ok: true }, warnings: [] });
  }
});

// As ProxySQL does with some settings, Percona XtraDB Cluster with locks, and Vitess with the whole statement.
test.each([
  [
    '`wait_timeout` of the session',
    (text: string) => text.replace(/wait_timeout = \d+/, 'wait_timeout = @@wait_timeout'),
    'SET wait_timeout',
  ],
  ['the lock', (text: string) => text.replace(/GET_LOCK\(.*, 224\), 0\)/, '1'), 'GET_LOCK'],
  [
    '`autocommit` at the end',
    (text: string) => text.replace('autocommit = 0, autocommit = 1', 'autocommit = @@autocommit'),
    'SET autocommit',
  ],
])('check fails with a sentence if the database swallows %s', async (_what, rewrite, named) => {
  const uri = await startMysqlProxyForTest(database.url, () => 'pass', rewrite);
  const { checked } = await check(database.connect({ uri }));
  expect(checked).toMatchObject({
    ok: false,
    error: { code: 'STORE_REPLY_UNEXPECTED', message: expect.stringContaining(named) as string },
  });
});
