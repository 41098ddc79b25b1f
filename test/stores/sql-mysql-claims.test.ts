// What a claim of MySQL must survive, on MariaDB through mysql2. The other libraries and MySQL itself: test/sql, once a
// week.
import { setTimeout } from 'node:timers/promises';
import type { PoolConnection, RowDataPacket } from 'mysql2/promise';
import { mysqlStore, sqlStore } from 'transfer-callbacks';
import { expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { beginWith, select, startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { startMysqlProxyForTest } from '../support/servers/mysql-proxy.js';
import { claimFree, requestOf, settles } from './support.js';

const database = startClaimDatabaseForFile();

/** Waits until the server has ended a session, which is a row of `CONNECTION_ID() AS id`. */
async function expectEnded(session: RowDataPacket | undefined): Promise<void> {
  await vi.waitFor(async () => {
    expect(
      await select(database.admin, `SELECT id FROM information_schema.processlist WHERE id = ${session?.id}`),
    ).toEqual([]);
  });
}

// DDL and the transaction of a procedure commit in the middle of the handler's.
test('a callback whose handler has committed early is in progress until it ends, and is handled again if it fails', async () => {
  await database.admin.query(`CREATE PROCEDURE book(IN name varchar(99), IN fails int) BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION; INSERT INTO written VALUES (name);
    IF fails THEN SIGNAL SQLSTATE '45000'; END IF;
    COMMIT; END`);
  const [store, other] = [mysqlStore(database.connect()), mysqlStore(database.connect())];
  const id = crypto.randomUUID();
  const first = await claimFree(store, {}, id);
  await expect(first.tx.query('CALL book(?, 1)', [id])).rejects.toThrow();
  await first.release();
  expect(await database.transaction.count(id)).toBe(0);

  const second = await claimFree(store, {}, id);
  await second.tx.query('CREATE TABLE early (id int)');
  expect((await other.claim(id, requestOf('copy'))).state).toBe('in_progress');
  expect((await other.read(id)).state).toBe('claimed');
  await second.release();
  expect((await other.read(id)).state).toBe('free');

  const third = await claimFree(other, {}, id);
  await third.tx.query('CALL book(?, 0)', [id]);
  await third.settle();
  expect(await database.transaction.count(id)).toBe(1);
  expect((await store.claim(id, requestOf('copy'))).state).toBe('handled');
});

test('a callback whose handler has committed early is not handled if its connection breaks before the success is recorded', async () => {
  const store = mysqlStore(database.connect());
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await claim.tx.query('CREATE TABLE earlier (id int)');
  const [session] = await select(claim.tx, 'SELECT CONNECTION_ID() AS id');
  await database.admin.query(`KILL ${session?.id}`);
  await expect(claim.settle()).rejects.toThrow();
  await expectEnded(session);
  expect((await store.claim(id, requestOf('next'))).state).toBe('claimed');
});

test.each(['READ UNCOMMITTED', 'READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
  'with %s no record is seen that is not committed, although the last statement was cut off',
  async (level) => {
    const uri = await startMysqlProxyForTest(database.url, (statement) =>
      statement.startsWith('SET @tc_held') ? 'cut' : 'pass',
    );
    const isolation = `SET SESSION TRANSACTION ISOLATION LEVEL ${level}`;
    const store = mysqlStore(beginWith(database.connect({ uri }), isolation), { idleTimeoutMs: 1_000 });
    const other = mysqlStore(beginWith(database.connect(), isolation));
    const id = crypto.randomUUID();
    const claim = await claimFree(store, {}, id);
    await database.transaction.write(claim.tx, id);
    await expect(claim.settle()).rejects.toThrow();
    // The server keeps the transaction until it has been idle for a second.
    expect((await other.claim(id, requestOf('copy'))).state).toBe('in_progress');
    expect((await other.read(id)).state).toBe('claimed');
    const next = await vi.waitFor(() => claimFree(other, { token: 'next' }, id));
    expect(await database.transaction.count(id)).toBe(0);
    await next.release();
  },
);

test('a commit that the server refuses is undone, and the connections of the pool are as they were', async () => {
  // A planned failover makes the server read-only. That spares users who may do everything.
  const pool = database.connect({ user: 'app' });
  const store = mysqlStore(pool);
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await database.transaction.write(claim.tx, id);
  await database.admin.query('SET GLOBAL read_only = 1');
  try {
    await expect(claim.settle()).rejects.toThrow();
  } finally {
    await database.admin.query('SET GLOBAL read_only = 0');
  }
  await database.expectRestored(pool);
  expect(await database.transaction.count(id)).toBe(0);
  const next = await claimFree(store, {}, id);
  await database.transaction.write(next.tx, id);
  await next.settle();
  expect(await database.transaction.count(id)).toBe(1);
});

test('a ROLLBACK that fails ends the connection, and nothing of the handler is kept', async () => {
  let isRefused = false;
  const uri = await startMysqlProxyForTest(database.url, (statement) => {
    const refuses = statement === 'ROLLBACK' && !isRefused;
    isRefused ||= refuses;
    return refuses ? 'refuse' : 'pass';
  });
  const pool = database.connect({ uri });
  const id = crypto.randomUUID();
  const claim = await claimFree(mysqlStore(pool), {}, id);
  await database.transaction.write(claim.tx, id);
  await claim.release();
  expect(isRefused).toBe(true);
  const next = await vi.waitFor(() => claimFree(mysqlStore(database.connect()), {}, id));
  expect(await database.transaction.count(id)).toBe(0);
  await next.release();
  await database.expectRestored(pool);
});

test('whatever a handler leaves, the connections of the pool are as they were', async () => {
  const pool = database.connect();
  const store = mysqlStore(pool);
  for (const statement of [
    'SELECT * FROM not_there',
    '/* */ ROLLBACK',
    '/* */ COMMIT',
    'SET autocommit = 1',
    'LOCK TABLES locked WRITE',
  ]) {
    for (const end of ['settle', 'release'] as const) {
      const claim = await claimFree(store);
      await claim.tx.query(statement).catch(() => undefined);
      await claim[end]().catch(() => undefined);
    }
  }
  await database.expectRestored(pool);
  await database.transaction.lock(database.admin, crypto.randomUUID());
});

test('the callback and the row locks of a machine that has vanished are free after idleTimeoutMs, and it cannot commit later', async () => {
  const { pool, proxy } = await database.connectThroughProxy();
  const [id, row] = [crypto.randomUUID(), crypto.randomUUID()];
  const claim = await claimFree(mysqlStore(pool, { idleTimeoutMs: 900 }), {}, id);
  await database.transaction.lock(claim.tx, row);
  const lastAt = performance.now();
  proxy.fallSilent();
  const other = mysqlStore(database.connect());
  const freed = database.transaction.lock(database.admin, row).then(() => performance.now() - lastAt);
  expect((await other.claim(id, requestOf('early'))).state).toBe('in_progress');
  const next = await vi.waitFor(() => claimFree(other, { token: 'next' }, id));
  // The server counts whole seconds.
  expect(performance.now() - lastAt).toBeGreaterThan(900);
  expect(await freed).toBeGreaterThan(900);
  await next.settle();
  expect(await settles(claim)).toBe(false);
});

test('a connection that falls silent is ended after the time of the request', async () => {
  const { pool, proxy } = await database.connectThroughProxy({ connectionLimit: 1 });
  const claim = await claimFree(mysqlStore(pool), { timeoutMs: 300 }, crypto.randomUUID());
  const [session] = await select(claim.tx, 'SELECT CONNECTION_ID() AS id');
  proxy.fallSilent();
  void claim.settle().catch(() => undefined);
  await expectEnded(session);
});

test('a claim that gets no reply in time rejects, and its connection ends', async () => {
  const { pool, proxy } = await database.connectThroughProxy({ connectionLimit: 1 });
  const store = mysqlStore(pool);
  const [session] = await select(pool, 'SELECT CONNECTION_ID() AS id');
  proxy.fallSilent();
  await expect(store.claim(crypto.randomUUID(), { ...requestOf('a'), timeoutMs: 300 })).rejects.toMatchObject({
    code: 'STORE_TIMEOUT',
    message: containing('The database did not reply within 300 ms.'),
  });
  await expectEnded(session);
});

test('a claim waits for a connection up to queueMs and then rejects, and a connection that comes later goes back', async () => {
  const pool = database.connect({ connectionLimit: 1 });
  const store = mysqlStore(pool);
  const holder = await pool.getConnection();
  const late = store.claim(crypto.randomUUID(), { ...requestOf('a'), timeoutMs: 5, queueMs: 99.6 });
  await expect(late).rejects.toMatchObject({
    code: 'STORE_TIMEOUT',
    message: containing('The pool had no connection within 100 ms.'),
  });
  holder.release();
  await (await claimFree(store)).settle();
});

test('a release through a connection that falls silent takes as long as a ROLLBACK may, and the connection ends', async () => {
  const { pool, proxy } = await database.connectThroughProxy({ connectionLimit: 1 });
  // The server would end the connection by itself after the default of 25 s, and the store after 30 s.
  const claim = await claimFree(mysqlStore(pool, { idleTimeoutMs: null }));
  const [session] = await select(claim.tx, 'SELECT CONNECTION_ID() AS id');
  proxy.fallSilent();
  const releasedAt = performance.now();
  await claim.release();
  expect(performance.now() - releasedAt).toBeLessThan(20_000);
  await expectEnded(session);
});

test('a fresh callback costs four round trips and a duplicate as many, and a release keeps its connection', async () => {
  const { pool, proxy } = await database.connectThroughProxy({ connectionLimit: 1 });
  const store = mysqlStore(pool);
  const [before] = await select(pool, 'SELECT CONNECTION_ID() AS id');
  const countTrips = async (work: () => Promise<unknown>): Promise<number> => {
    const begun = proxy.roundTrips();
    await work();
    // On the only connection: what was left to the background has ended.
    await select(pool, 'SELECT 1');
    return proxy.roundTrips() - begun - 1;
  };
  const id = crypto.randomUUID();
  expect(await countTrips(async () => (await claimFree(store, {}, id)).settle())).toBe(4);
  expect(await countTrips(() => store.claim(id, requestOf('copy')))).toBe(4);
  await (await claimFree(store)).release();
  expect(await select(pool, 'SELECT CONNECTION_ID() AS id')).toEqual([before]);
});

test('an insert that fails for another reason than its key takes over no row', async () => {
  const uri = await startMysqlProxyForTest(database.url, (text) => (text.startsWith('INSERT') ? 'refuse' : 'pass'));
  const id = crypto.randomUUID();
  await database.admin.query(`INSERT INTO transfer_callbacks VALUES ('${id}', 'x', '', '', NULL, 0, NULL, 1)`);
  await expect(mysqlStore(database.connect({ uri })).claim(id, requestOf('a'))).rejects.toThrow('interrupted');
  expect(await select(database.admin, `SELECT token FROM transfer_callbacks WHERE id = '${id}'`)).toEqual([
    { token: Buffer.from('x') },
  ]);
});

test('twenty concurrent claims on an expired record do not wait for the handler of the one that is granted', async () => {
  const stores = Array.from({ length: 4 }, () => mysqlStore(database.connect({ connectionLimit: 5 })));
  for (const handledAt of ['0', 'NULL']) {
    const id = crypto.randomUUID();
    await database.admin.query(
      `INSERT INTO transfer_callbacks VALUES ('${id}', 'x', '', '', 'facts', 0, ${handledAt}, 1)`,
    );
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (stores[n % 4] ?? expect.fail()).claim(id, requestOf(String(n)))),
    );
    const [claimed, ...more] = claims.filter((reply) => reply.state === 'claimed');
    expect([more.length, claims.filter(({ state }) => state === 'in_progress').length]).toEqual([0, 19]);
    expect(await stores[0]?.forget(id, 'facts')).toBe(false);
    await claimed?.claim.settle();
    expect((await stores[0]?.claim(id, requestOf('next')))?.state).toBe('handled');
  }
});

test('a connection that still has the transaction of a claim does not take its row for a record', async () => {
  interface Tx {
    readonly connection: PoolConnection;
  }
  const pool = database.connect({ connectionLimit: 1 });
  let isGone = false;
  // A library that gives the connection back before the last statement, as TypeORM does after `queryRunner.release()`.
  const store = sqlStore<Tx>({
    dialect: 'mysql',
    query: (sql, tx) => {
      if (sql.startsWith('SET @tc_held')) isGone = true;
      if (tx !== undefined && isGone) throw new Error('the connection is gone');
      return (tx?.connection ?? pool).query(sql);
    },
    async transaction(work) {
      const connection = await pool.getConnection();
      await connection.beginTransaction();
      await work({ connection }).finally(() => {
        connection.release();
      });
    },
  });
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await database.transaction.write(claim.tx.connection, id);
  await expect(claim.settle()).rejects.toThrow('the connection is gone');
  await expect(store.read(id)).rejects.toMatchObject({ code: 'STORE_REPLY_UNEXPECTED' });
});

test('a handler that takes longer than the pool waits, and than its retention, is recorded for all of it', async () => {
  const store = mysqlStore(database.connect());
  const id = crypto.randomUUID();
  const claim = await claimFree(store, { retentionMs: 1_500 }, id);
  await setTimeout(1_800);
  await claim.settle();
  expect((await store.claim(id, requestOf('copy'))).state).toBe('handled');
});
