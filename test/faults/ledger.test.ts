import { createPool } from 'mysql2/promise';
import { mysqlStore, pgStore } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { createTables, mysqlTransaction } from '../support/helpers/transactions.js';
import { forkApp } from '../support/programs/child.js';
import { keepLedger } from '../support/programs/ledger.js';
import { startMariaDb } from '../support/servers/mysql.js';
import { contractTransaction, startPostgres } from '../support/servers/postgres.js';

/**
 * How many callbacks each store gets: `LEDGER_CALLBACKS=20000 npx vitest run test/faults/ledger.test.ts` takes 7
 * minutes.
 */
const count = Number(process.env.LEDGER_CALLBACKS ?? 1_500);
const timeout = 120_000 + 100 * count;

const forkOn = (url: string) => (port: number) => forkApp('ledger-app.ts', { url, port });

test(
  'on pgStore the ledger has exactly one row for each transfer and each event of onOther, whatever their handlers do wrong',
  { timeout },
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const pool = server.pool();
    const store = pgStore(pool);
    await store.migrate();
    const transaction = await contractTransaction(pool);
    await keepLedger({ count, fork: forkOn(server.url), restart: () => server.restart(), store, transaction });
    const open = await pool.query("SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'");
    expect(open.rowCount).toBe(0);
  },
);

test(
  'on mysqlStore the ledger has exactly one row for each transfer and each event of onOther, whatever their handlers do wrong',
  { timeout },
  async () => {
    const server = await startMariaDb();
    const pool = createPool({ uri: server.url });
    onTestFinished(async () => {
      await pool.end();
      await server.stop();
    });
    const store = mysqlStore(pool);
    await store.migrate();
    await createTables(pool);
    const restart = async (): Promise<void> => {
      await server.kill();
      await server.restart();
    };
    await keepLedger({ count, fork: forkOn(server.url), restart, store, transaction: mysqlTransaction(pool) });
  },
);
