import { Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { expect, onTestFinished, test } from 'vitest';
import { mysqlStore, pgStore, redisStore, type CallbackStore } from 'transfer-callbacks';
import { createTables, mysqlTransaction } from '../support/helpers/mysql-transaction.js';
import { successOf, transfersOr, type Race } from '../support/helpers/reversal-race.js';
import { forkApp } from '../support/programs/child.js';
import { raceProcesses } from '../support/programs/reversals.js';
import { startMariaDb } from '../support/servers/mysql.js';
import { contractTransaction, startPostgres } from '../support/servers/postgres.js';
import { startRedis } from '../support/servers/redis.js';

interface Raced extends Pick<Race, 'countBookings'> {
  readonly url: string;
  readonly store: Required<Pick<CallbackStore<never>, 'forget'>>;
}

const starts = {
  async redis(): Promise<Raced> {
    const server = await startRedis();
    const redis = new Redis(server.url);
    onTestFinished(async () => {
      redis.disconnect();
      await server.stop();
    });
    const countBookings = async (status: string, id: string) => Number(await redis.get(`${status} ${id}`));
    return { url: server.url, store: redisStore(redis), countBookings };
  },
  async pg(): Promise<Raced> {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const pool = server.pool();
    const store = pgStore(pool);
    await store.migrate();
    const { count } = await contractTransaction(pool);
    return { url: server.url, store, countBookings: (status, id) => count(`${status} ${id}`) };
  },
  async mysql2(): Promise<Raced> {
    const server = await startMariaDb();
    const pool = createPool({ uri: server.url });
    onTestFinished(async () => {
      await pool.end();
      await server.stop();
    });
    const store = mysqlStore(pool);
    await store.migrate();
    await createTables(pool);
    const ledger = mysqlTransaction(pool);
    return { url: server.url, store, countBookings: (status, id) => ledger.count(`${status} ${id}`) };
  },
};

const count = transfersOr(200);

// Without a transaction a process that dies after its handler has succeeded leaves no record: no Redis is raced so.
test.each([
  ['redis', 'nothing more happens', false, false],
  ['redis', 'the records of successes end', true, false],
  ['pg', 'processes are killed', false, true],
  ['pg', 'processes are killed and the records of successes end', true, true],
  ['mysql2', 'processes are killed', false, true],
  ['mysql2', 'processes are killed and the records of successes end', true, true],
] as const)(
  'on two processes with %s each transfer is refunded once while %s',
  async (kind, what, ends, kills) => {
    const { url, store, countBookings } = await starts[kind]();
    const wrong = await raceProcesses({
      title: `${kind}: ${what}`,
      count,
      fork: (port) => forkApp('reversal-app.ts', { kind, url, port }),
      kills,
      disturb: ends ? (id) => store.forget(id, successOf(id)).catch(() => false) : undefined,
      countBookings,
      mayPayAgain: ends,
    });
    expect(wrong).toEqual([]);
  },
  120_000 + 1_000 * count,
);
