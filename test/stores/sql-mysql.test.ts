// The other libraries and MySQL itself: test/sql, once a week.
import { createPool, type Pool, type PoolConnection, type RowDataPacket } from 'mysql2/promise';
import { mysqlStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { beforeAll, describe, test } from 'vitest';
import { startMariaDb } from '../support/mysql.js';

type Tx = Pick<PoolConnection, 'query'>;

describe('two stores on MariaDB, each with its own pool of mysql2, keep the contract', () => {
  let one: Pool;
  let other: Pool;

  beforeAll(async () => {
    const server = await startMariaDb();
    const connect = (): Pool => createPool({ uri: server.url, connectionLimit: 40 });
    [one, other] = [connect(), connect()];
    await one.query('CREATE TABLE written (name varchar(255) NOT NULL)');
    await one.query('CREATE TABLE locked (name varchar(255) PRIMARY KEY)');
    await mysqlStore(one).migrate();
    return async () => {
      for (const pool of [one, other]) await pool.end();
      await server.stop();
    };
  });

  const transaction: StoreTransaction<Tx> = {
    write: (tx, name) => tx.query('INSERT INTO written VALUES (?)', [name]),
    async count(name) {
      const [rows] = await one.query<RowDataPacket[]>('SELECT name FROM written WHERE name = ?', [name]);
      return rows.length;
    },
    fail: (tx) => tx.query('SELECT * FROM not_there'),
    rollback: (tx) => tx.query('ROLLBACK'),
    lock: (tx, name) => tx.query('INSERT INTO locked VALUES (?)', [name]),
  };

  test.concurrent.each(storeContract)('$title', ({ check }) =>
    check(mysqlStore(one), { other: mysqlStore(other), transaction }),
  );
});
