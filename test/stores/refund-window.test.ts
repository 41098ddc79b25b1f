// The other libraries: test/sql/refund-window.test.ts, once a week.
import type { Pool, PoolClient } from 'pg';
import { pgStore, sqlStore, type CallbackStore } from 'transfer-callbacks';
import { beforeAll, expect, test } from 'vitest';
import { gated, isolations, makeGate, patient, windowCases } from '../support/helpers/refund-window.js';
import { announced, reversingReceiver } from '../support/helpers/reversing.js';
import { inPgTransaction } from '../support/helpers/transactions.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';

let server: PostgresServer;
let admin: Pool;
beforeAll(async () => {
  server = await startPostgres();
  admin = server.pool({ max: 10 });
  await pgStore(admin).migrate();
  await makeGate(admin);
  return () => server.stop();
});

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
