/** A merchant's app as a separate process, whose handlers book each transfer in Postgres. See ledger.test.ts. */
import { Redis } from 'ioredis';
import { Pool, type PoolClient } from 'pg';
import {
  pgStore,
  redisStore,
  transferCallbackListener,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';
import { ignore, listMistakes, type Steps } from './ledger-handlers.js';
import { readAppOptions, serveAsApp } from './app.js';

export interface LedgerOptions {
  readonly store: 'postgres' | 'redis';
  readonly postgresUrl: string;
  readonly redisUrl: string;
  readonly port: number;
}

const { store, postgresUrl, redisUrl, port } = readAppOptions() as LedgerOptions;
const pool = new Pool({ connectionString: postgresUrl, max: 16 });
pool.on('error', () => undefined); // The database is restarted in the middle.

const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms));

/** Books the transfer, and has something more to do after it, in which the process may be killed. */
async function book({ data }: TransferCallback, on: Pool | PoolClient): Promise<void> {
  await on.query('INSERT INTO ledger VALUES ($1, $2)', [data.id, store]);
  await pause(2);
}

/** What handlers do wrong, beside booking. */
const mistakes: readonly Steps<PoolClient>[] = [
  ...listMistakes<PoolClient>({
    fail: (tx) => tx.query('SELECT 1/0'),
    // Behind a comment `tx` does not refuse it.
    rollback: (tx) => tx.query('/* by an ORM */ ROLLBACK'),
  }),
  async (tx, bookNow) => {
    await tx.query('SAVEPOINT part');
    await bookNow();
    await tx.query('ROLLBACK TO part');
    await bookNow();
  },
  (tx, bookNow) => Promise.all([bookNow(), tx.query('SELECT 1')]),
  async (tx, bookNow) => {
    await bookNow();
    void tx.query('SELECT pg_sleep(0.005)');
  },
  async (tx, bookNow) => {
    await bookNow();
    await tx.query('ROLLBACK').catch(ignore);
  },
  async (tx, bookNow) => {
    await bookNow();
    await tx.query('/* by an ORM */ ROLLBACK; BEGIN');
  },
];

/** Books the transfer. Two deliveries of three make a mistake. */
async function bookByChance(callback: TransferCallback, { tx }: { tx: PoolClient }): Promise<void> {
  const steps = mistakes[Math.floor(Math.random() * 1.5 * mistakes.length)];
  const bookNow = (): Promise<void> => book(callback, tx);
  await (steps === undefined ? bookNow() : steps(tx, bookNow));
}

const deadlines = { storeTimeoutMs: 300, leaseMs: 1_000, inFlightWaitMs: 200, logger: false } as const;
const onPostgres: ReceiverOptions<TransferCallback, PoolClient> = {
  ...deadlines,
  store: pgStore(pool),
  onSuccess: bookByChance,
  onFailed: bookByChance,
};
const onRedis = (): ReceiverOptions => ({
  ...deadlines,
  store: redisStore(new Redis(redisUrl)),
  onSuccess: (callback) => book(callback, pool),
  onFailed: (callback) => book(callback, pool),
});

await serveAsApp(
  store === 'postgres' ? transferCallbackListener(onPostgres) : transferCallbackListener(onRedis()),
  port,
);
