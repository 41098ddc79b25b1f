import { createPool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore, pgStore, type CallbackStore, sqlStore } from 'transfer-callbacks';
import { beforeAll, expect, test } from 'vitest';
import type { Pool, PoolClient } from 'pg';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { startClaimDatabase } from '../support/servers/mysql-claims.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { gated, isolations, makeGate, patient, windowCases } from '../support/helpers/refund-window.js';
import { inPgTransaction } from '../support/helpers/transactions.js';

type Query = (this: unknown, ...args: unknown[]) => unknown;

// How many statements a delivery of a service that reverses costs, the one of its handler included.

/** A store, and the statements that its connections have sent. */
interface Counted {
  readonly store: CallbackStore<{ query(sql: string): unknown }>;
  readonly sent: unknown[];
}

/** Notes in `sent` what is sent on a connection. */
function count(connection: object, sent: unknown[]): void {
  const counted = connection as { query: Query };
  const { query } = counted;
  counted.query = function (...args) {
    sent.push(args[0]);
    return query.apply(this, args);
  };
}

let server: PostgresServer;
let admin: Pool;
let pg: Counted;
let mysql: Counted;
beforeAll(async () => {
  const [postgres, mariadb] = await Promise.all([startPostgres(), startClaimDatabase()]);
  server = postgres;
  admin = server.pool({ max: 10 });
  await pgStore(admin).migrate();
  await makeGate(admin);
  const sent: unknown[] = [];
  const pool = postgres.pool({ max: 1 });
  pool.on('connect', (client) => {
    count(client, sent);
  });
  pg = { store: pgStore(pool), sent };
  const mysqlSent: unknown[] = [];
  const mysqlPool = createPool({ uri: mariadb.url, connectionLimit: 1 });
  mysqlPool.pool.on('connection', (connection: unknown) => {
    count(connection as PoolConnection, mysqlSent);
  });
  mysql = { store: mysqlStore(mysqlPool), sent: mysqlSent };
  return async () => {
    await mysqlPool.end();
    await Promise.all([postgres.stop(), mariadb.stop()]);
  };
}, 60_000);

const handledBefore: Record<string, readonly Status[]> = {
  nothing: [],
  'a success': ['SUCCESS'],
  'a failure': ['FAILED'],
  'a reversal': ['REVERSED'],
  'a success and its reversal': ['SUCCESS', 'REVERSED'],
};

test.each<[after: string, status: Status, postgres: number, mariadb: number, outcome: string]>([
  ['nothing', 'SUCCESS', 3, 5, 'processed'],
  ['nothing', 'FAILED', 3, 5, 'processed'],
  ['nothing', 'REVERSED', 3, 5, 'processed'],
  ['a success', 'REVERSED', 6, 9, 'processed'],
  ['a success', 'SUCCESS', 2, 4, 'duplicate'],
  ['a failure', 'FAILED', 2, 4, 'duplicate'],
  ['a failure', 'REVERSED', 2, 4, 'duplicate'],
  ['a reversal', 'REVERSED', 2, 4, 'duplicate'],
  ['a reversal', 'FAILED', 2, 4, 'duplicate'],
  ['a success and its reversal', 'REVERSED', 2, 4, 'duplicate'],
  ['a success and its reversal', 'FAILED', 2, 4, 'duplicate'],
  ['a success', 'FAILED', 3, 4, 'conflict'],
])('after %s a callback of %s costs %i statements in PostgreSQL and %i in MySQL', async (after, status, ...rest) => {
  const [postgres, mariadb, outcome] = rest;
  for (const [{ store, sent }, statements] of [[pg, postgres] as const, [mysql, mariadb] as const]) {
    const id = crypto.randomUUID();
    const handle = (_status: Status, _id: string, { tx }: { tx: { query(sql: string): unknown } }) =>
      tx.query('SELECT 1');
    const { receiver } = reversingReceiver(store, { handle });
    // The connection is there.
    await receiver.receive(announced('SUCCESS', crypto.randomUUID()));
    for (const before of handledBefore[after] ?? []) await receiver.receive(announced(before, id));
    sent.length = 0;
    expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome });
    expect(sent).toHaveLength(statements);
    await receiver.close();
  }
});

// What commits between the snapshot of a claim and its locks. The other libraries: test/sql/refunds.test.ts, once a week.

/** As a library does that begins with the default of the session. */
function onPool(pool: Pool): CallbackStore<PoolClient> {
  return sqlStore<PoolClient>({
    dialect: 'postgres',
    query: (sql, tx) => (tx ?? pool).query(sql),
    transaction: (work) => inPgTransaction(pool, work),
  });
}

const stores: [string, (pool: Pool) => CallbackStore<unknown>][] = [
  ['pgStore', pgStore],
  ['sqlStore', onPool],
];

test.each(stores.flatMap(([name, make]) => isolations.map((isolation) => [name, isolation, make] as const)))(
  'on %s with %s nothing is refunded twice, and nothing lost, whatever commits between the snapshot of a claim and its locks',
  async (_name, isolation, make) => {
    const options = `${gated} -c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`;
    const pool = server.pool({ max: 2, options });
    for (const run of windowCases) await run(make(pool), pgStore(admin), admin);
    const { rows } = await admin.query(`SELECT query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'`);
    expect(rows).toEqual([]);
  },
  60_000,
);

test('with serializable sixty failures at once are processed, because no claim reads what another one writes', async () => {
  const pool = server.pool({ max: 20, options: '-c default_transaction_isolation=serializable' });
  const { receiver, ran } = reversingReceiver(onPool(pool), patient);
  const ids = Array.from({ length: 60 }, () => crypto.randomUUID());
  const ended = await Promise.all(ids.map(async (id) => receiver.receive(announced('FAILED', id))));
  expect(ended.map(({ outcome }) => outcome)).toEqual(ids.map(() => 'processed'));
  expect(ran).toHaveLength(60);
  await receiver.close();
}, 60_000);
