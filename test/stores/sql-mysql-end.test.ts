// What becomes of a claim whose connection ends. Old code does it in a `finally`: mysql2 would give one of a pool back
// then, in the middle of the transaction.
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { mysqlStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { select, startClaimDatabaseForFile } from '../support/servers/mysql-claims.js';
import { claimFree } from './support.js';

const database = startClaimDatabaseForFile();

/** What mysql2 has, and its types do not. */
interface Untyped extends AsyncDisposable {
  end(callback?: (value: unknown) => void): unknown;
  release(): unknown;
}

test.each<[string, (tx: Untyped) => unknown]>([
  ['end()', (tx) => tx.end()],
  ['end(callback)', (tx) => new Promise((resolve) => void tx.end(resolve))],
  ['release()', (tx) => tx.release()],
  ['await using', (tx) => tx[Symbol.asyncDispose]()],
])(
  'a handler that ends its connection by %s keeps its transaction, and takes no write of the app with it',
  async (_way, end) => {
    const { connect, transaction } = database;
    const pool = connect({ connectionLimit: 1 });
    const ofApp: Promise<unknown>[] = [];
    const receiver = receiverOf({
      store: mysqlStore(pool),
      async onSuccess({ data }, { tx }) {
        await transaction.write(tx, data.id);
        await end(tx);
        const writing = pool.query('INSERT INTO written VALUES (?)', [`app ${data.id}`]);
        ofApp.push(writing);
        // The app's write needs less if the pool has the connection again.
        await Promise.race([writing, setTimeout(200)]);
        if (ofApp.length === 1) throw new Error('the first attempt fails');
      },
    });
    const callback = transferSucceeded();
    const { id } = callback.data;
    for (const [outcome, written] of [
      ['handler_failed', 0],
      ['processed', 1],
    ] as const) {
      expect((await receiver.receive(callback)).outcome).toBe(outcome);
      await Promise.all(ofApp);
      expect(await transaction.count(id)).toBe(written);
      expect(await transaction.count(`app ${id}`)).toBe(ofApp.length);
    }
    await database.expectRestored(pool);
  },
);

test('a connection that the server ends under a handler aborts it immediately and keeps nothing of it, and the next delivery is processed', async () => {
  const pool = database.connect({ connectionLimit: 1 });
  const leaseMs = 29_000;
  const noticed: unknown[] = [];
  const receiver = receiverOf({
    store: mysqlStore(pool),
    leaseMs,
    async onSuccess({ data }, { tx, signal }) {
      await database.transaction.write(tx, data.id);
      if (noticed.length > 0) return;
      const [session] = await select(tx, 'SELECT CONNECTION_ID() AS id');
      const aborted = once(signal, 'abort');
      const endedAt = performance.now();
      await database.admin.query(`KILL ${session?.id}`);
      await aborted;
      noticed.push(signal.reason, performance.now() - endedAt < leaseMs / 6);
    },
  });
  const callback = transferSucceeded();
  expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
  expect(noticed).toMatchObject([{ code: 'LEASE_LOST' }, true]);
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(await database.transaction.count(callback.data.id)).toBe(1);
});

test('a claim leaves no listener on its connection', async () => {
  const pool = database.connect({ connectionLimit: 1 });
  const countListeners = async (): Promise<number> => {
    const taken = await pool.getConnection();
    taken.release();
    return taken.connection.listenerCount('error');
  };
  const before = await countListeners();
  for (const end of ['settle', 'release', 'release'] as const) await (await claimFree(mysqlStore(pool)))[end]();
  expect(await countListeners()).toBe(before);
});
