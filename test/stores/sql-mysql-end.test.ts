// Old code ends its connection in a `finally`. mysql2 would give one of a pool back then, in the middle of the transaction.
import { setTimeout } from 'node:timers/promises';
import { mysqlStore, transferCallbackReceiver } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { beforeAll, expect, test } from 'vitest';
import { startClaimDatabase, type ClaimDatabase } from '../support/servers/mysql-claims.js';

let database: ClaimDatabase;

beforeAll(async () => {
  database = await startClaimDatabase();
  return () => database.stop();
});

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
    const receiver = transferCallbackReceiver({
      store: mysqlStore(pool),
      logger: false,
      async onSuccess({ data }, { tx }) {
        await transaction.write(tx, data.id);
        await end(tx);
        const writing = pool.query('INSERT INTO written VALUES (?)', [`app ${data.id}`]);
        ofApp.push(writing);
        // The app's write needs less if the pool has the connection again.
        await Promise.race([writing, setTimeout(200)]);
        if (ofApp.length === 1) throw new Error('the first attempt fails');
      },
      onFailed: () => undefined,
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
