import type { Pool, PoolClient } from 'pg';
import type { StoreTransaction } from 'transfer-callbacks/testing';

/** What the checks of `storeContract` do in a transaction of pg, in the tables of `contractTransaction`. */
export function pgTransaction(pool: Pool): Required<StoreTransaction<Pick<PoolClient, 'query'>>> {
  return {
    write: (tx, key) => tx.query('INSERT INTO contract_writes VALUES ($1)', [key]),
    async count(key) {
      const { rowCount } = await pool.query('SELECT FROM contract_writes WHERE key = $1', [key]);
      return rowCount ?? 0;
    },
    fail: (tx) => tx.query('SELECT 1/0'),
    // Behind a comment `tx` does not refuse it.
    rollback: (tx) => tx.query('/* by an ORM */ ROLLBACK'),
    lock: (tx, row) => tx.query('INSERT INTO contract_locks VALUES ($1)', [row]),
  };
}

/** Runs a transaction as libraries do. */
export async function inPgTransaction(pool: Pool, work: (client: PoolClient) => Promise<unknown>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}
