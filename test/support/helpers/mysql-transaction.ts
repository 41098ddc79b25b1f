import type { Pool, PoolConnection, RowDataPacket } from 'mysql2/promise';
import type { StoreTransaction } from 'transfer-callbacks/testing';

/** Creates the tables that `mysqlTransaction` writes to. */
export async function createTables(pool: Pool): Promise<void> {
  await pool.query('CREATE TABLE written (name varchar(255) NOT NULL)');
  await pool.query('CREATE TABLE locked (name varchar(255) PRIMARY KEY)');
}

/** Runs a transaction as libraries do. */
export async function inTransaction(pool: Pool, work: (connection: PoolConnection) => Promise<void>): Promise<void> {
  const connection = await pool.getConnection();
  try {
    await connection.beginTransaction();
    await work(connection);
    await connection.commit();
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}

/** What the checks of `storeContract` do in a transaction of mysql2. */
export function mysqlTransaction(pool: Pool): StoreTransaction<Pick<PoolConnection, 'query'>> {
  return {
    write: (tx, name) => tx.query('INSERT INTO written VALUES (?)', [name]),
    async count(name) {
      const [rows] = await pool.query<RowDataPacket[]>('SELECT name FROM written WHERE name = ?', [name]);
      return rows.length;
    },
    fail: (tx) => tx.query('SELECT * FROM not_there'),
    // Behind a comment `tx` does not refuse it.
    rollback: (tx) => tx.query('/* by an ORM */ ROLLBACK'),
    lock: (tx, name) => tx.query('INSERT INTO locked VALUES (?)', [name]),
  };
}
