import { fileURLToPath } from 'node:url';
import { Pool, type PoolClient } from 'pg';
import {
  postgresStore,
  transferCallbackReceiver,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { DataSource, EntitySchema, type EntityManager } from 'typeorm';

interface Payout {
  callback_id: string;
  external_id: string;
  status: string;
  amount: number;
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- as TypeORM documents it.
const Payout = new EntitySchema<Payout>({
  name: 'payout',
  tableName: 'payouts_typeorm',
  columns: {
    callback_id: { type: 'text', primary: true },
    external_id: { type: 'text' },
    status: { type: 'text' },
    amount: { type: 'numeric' },
  },
});

const url = process.env.DATABASE_URL ?? 'postgres://localhost/postgres';
let initialized: Promise<DataSource> | undefined;

function dataSource(): Promise<DataSource> {
  return (initialized ??= new DataSource({ type: 'postgres', url, entities: [Payout] }).initialize());
}

/** Sets the client that the query runner would otherwise connect. TypeORM has no public way to pass one in. */
async function managerOn(tx: PoolClient): Promise<EntityManager> {
  const runner = (await dataSource()).createQueryRunner();
  return Object.assign(runner, { databaseConnection: tx }).manager;
}

/**
 * Runs TypeORM on the client of the claim. This row and the callback's record are committed together, or neither is.
 * `save` and `manager.transaction` begin and commit a transaction, which becomes a savepoint within the store's
 * transaction. Use this `manager`: repositories of the data source write through other clients. Do not set an isolation
 * level: it is READ COMMITTED.
 */
export async function book({ data }: TransferCallback, { tx }: HandlerContext<PoolClient>): Promise<void> {
  const manager = await managerOn(tx);
  const { id, externalId, status, amount } = data;
  await manager.save(Payout, { callback_id: id, external_id: externalId, status, amount });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pool = new Pool({ connectionString: url });
  const store = postgresStore(pool);
  await store.migrate();
  await pool.query(`CREATE TABLE IF NOT EXISTS payouts_typeorm
    (callback_id text PRIMARY KEY, external_id text NOT NULL, status text NOT NULL, amount numeric NOT NULL)`);

  const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  const orm = await dataSource();
  console.log(await orm.manager.findBy(Payout, { callback_id: callback.data.id }));
  await orm.destroy();
  await pool.end();
}
