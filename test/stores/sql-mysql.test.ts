// The other libraries and MySQL itself: test/sql, once a week.
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { mysqlStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { beforeAll, describe, test } from 'vitest';
import { startMariaDb } from '../support/mysql.js';
import { createTables, mysqlTransaction } from '../support/mysql-transaction.js';

describe('two stores on MariaDB, each with its own pool of mysql2, keep the contract', () => {
  let one: Pool;
  let other: Pool;
  let transaction: StoreTransaction<Pick<PoolConnection, 'query'>>;

  beforeAll(async () => {
    const server = await startMariaDb();
    const connect = (): Pool => createPool({ uri: server.url, connectionLimit: 40 });
    [one, other] = [connect(), connect()];
    transaction = mysqlTransaction(one);
    await createTables(one);
    await mysqlStore(one).migrate();
    return async () => {
      for (const pool of [one, other]) await pool.end();
      await server.stop();
    };
  });

  test.concurrent.each(storeContract)('$title', ({ check }) =>
    check(mysqlStore(one), { other: mysqlStore(other), transaction }),
  );
});
