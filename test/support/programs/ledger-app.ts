/** A merchant's app as a separate process, whose handlers book each callback through pg or mysql2. See ledger.test.ts. */
import { createPool } from 'mysql2/promise';
import { Pool, type PoolClient } from 'pg';
import { mysqlStore, pgStore } from 'transfer-callbacks';
import { mysqlTransaction, pgTransaction } from '../helpers/transactions.js';
import { readAppOptions } from './app.js';
import { ignore, serveLedger, type Steps } from './ledger-handlers.js';

const { url, port } = readAppOptions() as { url: string; port: number };

const own: readonly Steps<PoolClient>[] = [
  async (tx, book) => {
    await tx.query('SAVEPOINT part');
    await book();
    await tx.query('ROLLBACK TO part');
    await book();
  },
  (tx, book) => Promise.all([book(), tx.query('SELECT 1')]),
  async (tx, book) => {
    await book();
    void tx.query('SELECT pg_sleep(0.005)');
  },
  async (tx, book) => {
    await book();
    await tx.query('ROLLBACK').catch(ignore);
  },
  async (tx, book) => {
    await book();
    await tx.query('/* by an ORM */ ROLLBACK; BEGIN');
  },
];

if (url.startsWith('mysql')) {
  const pool = createPool({ uri: url, connectionLimit: 16 });
  await serveLedger({ store: mysqlStore(pool), transaction: mysqlTransaction(pool), port, undoesLaterWrites: true });
} else {
  const pool = new Pool({ connectionString: url, max: 16 });
  await serveLedger({ store: pgStore(pool), transaction: pgTransaction(pool), port, own });
}
