import { mysqlStore, sqlStore } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { request } from './support.js';

const database = startClaimDatabaseForFile();

async function claim(id: string, record?: 'reversal' | 'both') {
  const reply = await mysqlStore(database.admin).claim(id, { ...request, record });
  return reply.state === 'claimed' ? reply.claim : expect.fail(reply.state);
}

test.each(['reversed\u001f', ''])('a claim of both records whose row %j is gone commits nothing', async (prefix) => {
  const store = mysqlStore(database.admin);
  const id = crypto.randomUUID();
  const both = await claim(id, 'both');
  await database.transaction.write(both.tx, id);
  await both.tx.query('DELETE FROM transfer_callbacks WHERE id = ?', [Buffer.from(prefix + id)]);
  await expect(both.settle()).rejects.toThrow();
  expect(await database.transaction.count(id)).toBe(0);
  for (const record of [undefined, 'reversal'] as const) {
    expect(await store.read(id, record)).toEqual({ state: 'free' });
  }
});

test('a refund is read as claimed while it is, and not while its transfer alone is claimed', async () => {
  const store = mysqlStore(database.admin);
  const id = crypto.randomUUID();
  const transfer = await claim(id);
  expect(await store.read(id)).toMatchObject({
    state: 'claimed',
    by: expect.stringMatching(/^connection \d+$/) as string,
  });
  expect(await store.read(id, 'reversal')).toEqual({ state: 'free' });
  await transfer.settle();
  const refund = await claim(id, 'reversal');
  expect(await store.read(id)).toMatchObject({ state: 'handled' });
  expect(await store.read(id, 'reversal')).toMatchObject({ state: 'claimed' });
  // What commits early leaves a row that nobody has locked.
  await refund.tx.query('CREATE TABLE IF NOT EXISTS early_refund (name varchar(9))');
  expect(await store.read(id, 'reversal')).toMatchObject({ state: 'claimed' });
  await refund.release();
  expect(await store.read(id, 'reversal')).toEqual({ state: 'free' });
});

test('prune tries once more after a deadlock, and rejects if it is one again', async () => {
  const sent: string[] = [];
  let deadlocks = 1;
  const store = sqlStore({
    dialect: 'mysql',
    async query(sql) {
      if (sql.startsWith('DELETE')) {
        sent.push(sql);
        if (sent.length <= deadlocks) throw Object.assign(new Error('Deadlock found'), { errno: 1213 });
      }
      return database.admin.query(sql);
    },
    transaction: () => Promise.reject(new Error('not used')),
  });
  const insert = () =>
    database.admin
      .query(`INSERT INTO transfer_callbacks (id, token, event, external_id, fingerprint, claimed_at, handled_at, expires_at)
      VALUES ('${crypto.randomUUID()}', '', '', '', 'facts', 1, 1, 2)`);
  await insert();
  expect(await store.prune({ olderThanMs: 90_001 })).toBe(1);
  expect(sent).toHaveLength(2);
  await insert();
  [sent.length, deadlocks] = [0, 2];
  await expect(store.prune({ olderThanMs: 90_001 })).rejects.toThrow('Deadlock found');
});
