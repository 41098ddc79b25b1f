import type { Pool, PoolClient } from 'pg';
import type { Redis } from 'ioredis';
import { memoryStore, pgStore, redisStore, type CallbackStore } from 'transfer-callbacks';

/** A store, and the books that the handlers of a test write. */
export interface Ledger {
  readonly store: CallbackStore<unknown>;
  readonly book: (externalId: string, entry: string, tx: unknown) => Promise<void>;
  readonly entries: (externalId: string) => Promise<string[]>;
}

/** Books in memory, beside a store without a transaction. */
function inMemory(store: CallbackStore<unknown>): Ledger {
  const books: (readonly [externalId: string, entry: string])[] = [];
  return {
    store,
    async book(...[externalId, entry]) {
      await new Promise(setImmediate);
      books.push([externalId, entry]);
    },
    entries: (externalId) => Promise.resolve(books.filter(([id]) => id === externalId).map(([, entry]) => entry)),
  };
}

export const memoryLedger = (): Ledger => inMemory(memoryStore());

export const redisLedger = (redis: Redis): Ledger => inMemory(redisStore(redis));

/** Books in the transaction of the claim. */
export function pgLedger(pool: Pool): Ledger {
  return {
    store: pgStore(pool),
    async book(externalId, entry, tx) {
      await (tx as PoolClient).query('INSERT INTO ledger VALUES ($1, $2)', [externalId, entry]);
    },
    async entries(externalId) {
      const { rows } = await pool.query<{ entry: string }>('SELECT entry FROM ledger WHERE callback = $1', [
        externalId,
      ]);
      return rows.map(({ entry }) => entry);
    },
  };
}
