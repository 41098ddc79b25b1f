import { fileURLToPath } from 'node:url';
import { Kysely, PostgresDialect, type ColumnType } from 'kysely';
import { Pool, type PoolClient } from 'pg';
import {
  postgresStore,
  transferCallbackReceiver,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

interface Tables {
  payouts_kysely: {
    callback_id: string;
    external_id: string;
    status: string;
    /** `pg` reads numeric as a string, because a JavaScript number may not hold it exactly. */
    amount: ColumnType<string, number>;
  };
}

/** Makes the pool that Kysely requires, with the client of the claim. The store ignores Kysely's `release`. */
function kyselyOn(tx: PoolClient): Kysely<Tables> {
  const pool = { connect: () => Promise.resolve(tx), end: () => Promise.resolve() };
  return new Kysely({ dialect: new PostgresDialect({ pool }) });
}

/**
 * Runs Kysely on the client of the claim. This row and the callback's record are committed together, or neither is.
 * `transaction` becomes a savepoint within the store's transaction. A single insert needs none. Do not run transactions
 * concurrently, and do not set an isolation level: it is READ COMMITTED.
 */
export async function book({ data }: TransferCallback, { tx }: HandlerContext<PoolClient>): Promise<void> {
  const { id, externalId, status, amount } = data;
  await kyselyOn(tx)
    .transaction()
    .execute((nested) =>
      nested
        .insertInto('payouts_kysely')
        .values({ callback_id: id, external_id: externalId, status, amount })
        .execute(),
    );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://localhost/postgres' });
  const store = postgresStore(pool);
  await store.migrate();
  await pool.query(`CREATE TABLE IF NOT EXISTS payouts_kysely
    (callback_id text NOT NULL, external_id text NOT NULL, status text NOT NULL, amount numeric NOT NULL)`);

  const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  const database = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  console.log(
    await database.selectFrom('payouts_kysely').selectAll().where('callback_id', '=', callback.data.id).execute(),
  );
  await database.destroy(); // Ends the pool.
}
