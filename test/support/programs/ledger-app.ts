/** A merchant's app as a separate process, whose handlers book each callback through pg. See ledger.test.ts. */
import { Pool, type PoolClient } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { pgTransaction } from '../helpers/pg-transaction.js';
import { readAppOptions } from './app.js';
import { ignore, serveLedger, type Steps } from './ledger-handlers.js';

const { url, port } = readAppOptions() as { url: string; port: number };
const pool = new Pool({ connectionString: url, max: 16 });

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

await serveLedger({ store: pgStore(pool), transaction: pgTransaction(pool), port, own });
