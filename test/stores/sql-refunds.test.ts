import { mysqlStore, pgStore, type CallbackStore, sqlStore } from 'transfer-callbacks';
import { beforeAll, expect, test, vi } from 'vitest';
import type { Pool, PoolClient } from 'pg';
import { announced, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { gated, isolations, makeGate, patient, windowCases } from '../support/helpers/refund-window.js';
import { inPgTransaction } from '../support/helpers/transactions.js';

const database = startClaimDatabaseForFile();
const ledger = startLedgerForFile({ max: 10 });
beforeAll(() => makeGate(ledger.pool));

// How many statements a delivery of a service that reverses costs, the one of its handler included.

/** A store on one connection, and how many statements it has sent. */
interface Counted {
  readonly store: CallbackStore<{ query(sql: string): unknown }>;
  readonly countSent: () => number;
}

async function countOnPostgres(): Promise<Counted> {
  const pool = ledger.server.pool({ max: 1 });
  const client = await pool.connect();
  const query = vi.spyOn(client, 'query');
  client.release();
  return { store: pgStore(pool), countSent: () => query.mock.calls.length };
}

async function countOnMysql(): Promise<Counted> {
  const pool = database.connect({ connectionLimit: 1 });
  const taken = await pool.getConnection();
  const query = vi.spyOn(taken.connection, 'query');
  taken.release();
  return { store: mysqlStore(pool), countSent: () => query.mock.calls.length };
}

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
  for (const [count, statements] of [[countOnPostgres, postgres] as const, [countOnMysql, mariadb] as const]) {
    const { store, countSent } = await count();
    const id = crypto.randomUUID();
    const handle = (_status: Status, _id: string, { tx }: { tx: { query(sql: string): unknown } }) =>
      tx.query('SELECT 1');
    const { receiver } = reversingReceiver(store, { handle });
    for (const before of handledBefore[after] ?? []) await receiver.receive(announced(before, id));
    const sent = countSent();
    expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome });
    expect(countSent() - sent).toBe(statements);
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
    const pool = ledger.server.pool({ max: 2, options });
    const { pool: admin } = ledger;
    for (const run of windowCases) await run(make(pool), pgStore(admin), admin);
    const { rows } = await admin.query(`SELECT query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'`);
    expect(rows).toEqual([]);
  },
);

test('with serializable sixty failures at once are processed, because no claim reads what another one writes', async () => {
  const pool = ledger.server.pool({ max: 20, options: '-c default_transaction_isolation=serializable' });
  const { receiver, ran } = reversingReceiver(onPool(pool), patient);
  const ids = Array.from({ length: 60 }, () => crypto.randomUUID());
  const ended = await Promise.all(ids.map(async (id) => receiver.receive(announced('FAILED', id))));
  expect(ended.map(({ outcome }) => outcome)).toEqual(ids.map(() => 'processed'));
  expect(ran).toHaveLength(60);
  await receiver.close();
});
