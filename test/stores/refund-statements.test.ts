// How many statements a delivery of a service that reverses costs, the one of its handler included.
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore, pgStore, type CallbackStore } from 'transfer-callbacks';
import { beforeAll, expect, test } from 'vitest';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { startClaimDatabase } from '../support/servers/mysql-claims.js';
import { startPostgres } from '../support/servers/postgres.js';

type Query = (this: unknown, ...args: unknown[]) => unknown;

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

let pg: Counted;
let mysql: Counted;
beforeAll(async () => {
  const [postgres, mariadb] = await Promise.all([startPostgres(), startClaimDatabase()]);
  const sent: unknown[] = [];
  const pool = postgres.pool({ max: 1 });
  pool.on('connect', (client) => {
    count(client, sent);
  });
  const store = pgStore(pool);
  await store.migrate();
  pg = { store: store, sent };
  const mysqlSent: unknown[] = [];
  const mysqlPool: Pool = createPool({ uri: mariadb.url, connectionLimit: 1 });
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
