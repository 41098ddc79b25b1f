/** A merchant's app as a separate process, whose `onOther` credits each deposit. See deposits.test.ts. */
import { Redis } from 'ioredis';
import { createPool, type PoolConnection } from 'mysql2/promise';
import { Pool, type PoolClient } from 'pg';
import { mysqlStore, pgStore, redisStore, transferCallbackListener, type CallbackStore } from 'transfer-callbacks';
import { z } from 'zod';
import { readAppOptions, serveAsApp } from './app.js';

export interface DepositsOptions {
  readonly on: 'redis' | 'postgres' | 'mysql';
  readonly url: string;
}

const { on, url } = readAppOptions() as DepositsOptions;

const paid = z.object({ type: z.literal('charge.paid'), charge: z.object({ id: z.string() }) });
const schema = paid.transform(({ type, charge }) => ({ event: 'other' as const, type, data: charge }));

async function serveDeposits<Tx>(
  store: CallbackStore<Tx>,
  credit: (tx: Tx, deposit: string) => Promise<unknown>,
): Promise<void> {
  const unexpected = (): never => {
    throw new Error('no transfer');
  };
  const handlers = {
    onSuccess: unexpected,
    onFailed: unexpected,
    onOther: ({ data }: z.output<typeof schema>, { tx }: { tx: Tx }) => credit(tx, data.id),
  };
  await serveAsApp(transferCallbackListener({ store, schema, ...handlers, logger: false }), 0);
}

switch (on) {
  case 'redis': {
    const redis = new Redis(url);
    await serveDeposits(redisStore(redis), (_tx, deposit) => redis.rpush('credits', deposit));
    break;
  }
  case 'postgres':
    await serveDeposits(pgStore(new Pool({ connectionString: url, max: 8 })), (tx: PoolClient, deposit) =>
      tx.query('INSERT INTO credits VALUES ($1)', [deposit]),
    );
    break;
  case 'mysql':
    await serveDeposits(
      mysqlStore(createPool({ uri: url, connectionLimit: 8 })),
      (tx: Pick<PoolConnection, 'query'>, deposit) => tx.query('INSERT INTO credits VALUES (?)', [deposit]),
    );
}
