import { fileURLToPath } from 'node:url';
import { createPool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore, transferCallbackReceiver, type HandlerContext, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

/** Books a callback in the transaction of its claim. This row and the callback's record are committed together. */
export async function book({ data }: TransferCallback, { tx }: HandlerContext<PoolConnection>): Promise<void> {
  const { id, externalId, status, amount } = data;
  await tx.execute('INSERT INTO payouts VALUES (?, ?, ?, ?)', [id, externalId, status, amount]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // A connection for each handler that runs at a time, and some to renew their leases.
  const pool = createPool({ uri: process.env.DATABASE_URL ?? 'mysql://localhost/payouts', connectionLimit: 20 });
  const store = mysqlStore(pool);
  await store.migrate();
  await pool.query(`CREATE TABLE IF NOT EXISTS payouts (callback_id varchar(255) NOT NULL,
    external_id text NOT NULL, status varchar(20) NOT NULL, amount decimal(20, 2) NOT NULL)`);

  const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  const [rows] = await pool.query('SELECT * FROM payouts WHERE callback_id = ?', [callback.data.id]);
  console.log(rows);
  await pool.end();
}
