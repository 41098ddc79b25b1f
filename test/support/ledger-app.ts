/** A merchant's app as a separate process, whose handlers book each transfer in Postgres. See ledger.test.ts. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:http';
import { Redis } from 'ioredis';
import { Pool, type PoolClient } from 'pg';
import {
  postgresStore,
  redisStore,
  transferCallbackListener,
  type ReceiverOptions,
  type TransferCallback,
} from 'transfer-callbacks';

export interface LedgerOptions {
  readonly store: 'postgres' | 'redis';
  readonly postgresUrl: string;
  readonly redisUrl: string;
  readonly port: number;
}

const { store, postgresUrl, redisUrl, port } = JSON.parse(process.env.LEDGER ?? '{}') as LedgerOptions;
const pool = new Pool({ connectionString: postgresUrl, max: 16 });
pool.on('error', () => undefined); // The database is restarted in the middle.

/** Books the transfer, and has something more to do after it, in which the process may be killed. */
async function book({ data }: TransferCallback, on: Pool | PoolClient): Promise<void> {
  await on.query('INSERT INTO ledger VALUES ($1, $2)', [data.id, store]);
  await new Promise((resolve) => setTimeout(resolve, 2));
}

const deadlines = { storeTimeoutMs: 300, leaseMs: 1_000, inFlightWaitMs: 200, logger: false } as const;
const onPostgres: ReceiverOptions<TransferCallback, PoolClient> = {
  ...deadlines,
  store: postgresStore(pool),
  onSuccess: (callback, { tx }) => book(callback, tx),
  onFailed: (callback, { tx }) => book(callback, tx),
};
const onRedis = (): ReceiverOptions => ({
  ...deadlines,
  store: redisStore(new Redis(redisUrl)),
  onSuccess: (callback) => book(callback, pool),
  onFailed: (callback) => book(callback, pool),
});

const listener = store === 'postgres' ? transferCallbackListener(onPostgres) : transferCallbackListener(onRedis());
const server = createServer(listener).listen(port, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit());
process.send?.((server.address() as AddressInfo).port);
