import type { Pool as MysqlPool, PoolConnection, RowDataPacket } from 'mysql2/promise';
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

/** Creates the tables that `mysqlTransaction` writes to. */
export async function createTables(pool: MysqlPool): Promise<void> {
  await pool.query('CREATE TABLE written (name varchar(255) NOT NULL)');
  await pool.query('CREATE TABLE locked (name varchar(255) PRIMARY KEY)');
}

/** Runs a transaction as libraries do. */
export async function inTransaction(
  pool: MysqlPool,
  work: (connection: PoolConnection) => Promise<void>,
): Promise<void> {
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
export function mysqlTransaction(pool: MysqlPool): StoreTransaction<Pick<PoolConnection, 'query'>> {
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
