import type { Pool } from 'pg';
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contractTransaction, startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { brokenTransactions, transactionStore, type Tx } from './broken-transactions.js';
import { deadlockSwallowed, failureSwallowed, lateWrite, rolledBack, writeKept } from './check-titles.js';

let server: PostgresServer;
let pool: Pool;
let transaction: StoreTransaction<Tx>;
beforeAll(async () => {
  server = await startPostgres();
  pool = server.pool({ max: 100 });
  // A store of `brokenTransactions` refuses this text.
  transaction = { ...(await contractTransaction(pool)), rollback: (tx) => tx.query('ROLLBACK') };
});
afterAll(() => server.stop());

/** A store that settles beside the transaction. */
function besideTransaction(): CallbackStore<Tx> {
  const { change } = brokenTransactions.find(({ caughtBy }) => caughtBy.length === 4) ?? expect.fail();
  return transactionStore(pool, change);
}

function find(title: string) {
  return storeContract.find((each) => each.title === title) ?? expect.fail(`There is no check "${title}".`);
}

describe('the store contract accepts a store whose handlers write in a transaction', () => {
  test.concurrent.each(storeContract)('$title', ({ check }) => check(transactionStore(pool), { transaction }));
});

for (const { fault, change, caughtBy, says } of brokenTransactions) {
  test.concurrent.each(caughtBy)(`a store that ${fault} is caught: %s`, async (title) => {
    await expect(find(title).check(transactionStore(pool, change), { transaction })).rejects.toThrow(says);
  });
}

test.each([{}, { transaction: { write: () => Promise.resolve() } as never }])(
  'a transactional store is refused without `write` and `count`, as in %o',
  async (options) => {
    await expect(find(writeKept).check(transactionStore(pool), options)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('check(store, { transaction: {') as string,
    });
  },
);

test('a store that is not transactional needs no `transaction`, and is checked as any other if it gets one', async () => {
  await find(lateWrite).check(memoryStore());
  await expect(
    find(lateWrite).check({ ...besideTransaction(), transactional: false }, { transaction }),
  ).rejects.toThrow(/2 were kept/);
});

test.each([failureSwallowed, rolledBack, deadlockSwallowed])('without its step a check passes: %s', async (title) => {
  const without: StoreTransaction<Tx> = {
    write: (tx, key) => transaction.write(tx, key),
    count: (key) => transaction.count(key),
  };
  await find(title).check(besideTransaction(), { transaction: without });
});

test('a step that does not do what it is for is reported', async () => {
  const done = (): Promise<void> => Promise.resolve();
  const idle = { ...transaction, fail: done, lock: done };
  await expect(find(failureSwallowed).check(transactionStore(pool), { transaction: idle })).rejects.toThrow(
    /`fail` was to reject/,
  );
  await expect(find(deadlockSwallowed).check(transactionStore(pool), { transaction: idle })).rejects.toThrow(
    /met no deadlock/,
  );
});
