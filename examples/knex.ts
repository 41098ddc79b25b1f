import { fileURLToPath } from 'node:url';
import knexFactory from 'knex';
import { Pool, type PoolClient } from 'pg';
import {
  postgresStore,
  transferCallbackReceiver,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** Only builds queries. Without connection settings Knex has no pool. */
const knex = knexFactory({ client: 'pg' });

/**
 * Runs Knex on the client of the claim. This row and the callback's record are committed together, or neither is.
 * `knex.transaction(…, { connection: tx })` becomes a savepoint within the store's transaction. A single query is
 * `knex('payouts').connection(tx)`. Without `connection` Knex uses a client of its own pool, and commits separately. Do
 * not run transactions concurrently, and do not set an isolation level: it is READ COMMITTED.
 */
export async function book({ data }: TransferCallback, { tx }: HandlerContext<PoolClient>): Promise<void> {
  const { id, externalId, status, amount } = data;
  await knex.transaction(
    async (nested) => {
      await nested('payouts_knex').insert({ callback_id: id, external_id: externalId, status, amount });
    },
    { connection: tx },
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://localhost/postgres' });
  const store = postgresStore(pool);
  await store.migrate();
  await pool.query(`CREATE TABLE IF NOT EXISTS payouts_knex
    (callback_id text NOT NULL, external_id text NOT NULL, status text NOT NULL, amount numeric NOT NULL)`);

  const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  const client = await pool.connect();
  console.log(await knex('payouts_knex').connection(client).where({ callback_id: callback.data.id }));
  client.release();
  await pool.end();
}
