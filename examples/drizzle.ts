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
 * Drizzle on the client of the claim: this row and the record of the callback are committed together, or neither is.
 * `transaction` works too, as a savepoint within the store's transaction; without it the insert would do as well. Run
 * one transaction after the other, and give it no isolation level: it is READ COMMITTED.
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
