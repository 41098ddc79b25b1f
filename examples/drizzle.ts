import { fileURLToPath } from 'node:url';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { numeric, pgTable, text } from 'drizzle-orm/pg-core';
import { Pool, type PoolClient } from 'pg';
import {
  postgresStore,
  transferCallbackReceiver,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

const payouts = pgTable('payouts_drizzle', {
  callbackId: text('callback_id').notNull(),
  externalId: text('external_id').notNull(),
  status: text().notNull(),
  amount: numeric({ mode: 'number' }).notNull(),
});

/**
 * Runs Drizzle on the client of the claim. This row and the callback's record are committed together, or neither is.
 * `transaction` becomes a savepoint within the store's transaction. A single insert needs none. Do not run transactions
 * concurrently, and do not set an isolation level: it is READ COMMITTED.
 */
export async function book({ data }: TransferCallback, { tx }: HandlerContext<PoolClient>): Promise<void> {
  const { id, externalId, status, amount } = data;
  await drizzle(tx).transaction(async (nested) => {
    await nested.insert(payouts).values({ callbackId: id, externalId, status, amount });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://localhost/postgres' });
  const store = postgresStore(pool);
  await store.migrate();
  await pool.query(`CREATE TABLE IF NOT EXISTS payouts_drizzle
    (callback_id text NOT NULL, external_id text NOT NULL, status text NOT NULL, amount numeric NOT NULL)`);

  const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  console.log(await drizzle(pool).select().from(payouts).where(eq(payouts.callbackId, callback.data.id)));
  await pool.end();
}
