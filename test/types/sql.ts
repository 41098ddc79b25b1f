// Libraries are taken by their shape, and handlers get the transaction of the library without an annotation.
import type { Pool, PoolClient } from 'pg';
import { expectTypeOf } from 'vitest';
import { pgStore, sqlStore, transferCallbackRouter, type SqlStore } from 'transfer-callbacks';

declare const pool: Pool;
const store = pgStore(pool, { schema: 'payouts' });
expectTypeOf(store).toEqualTypeOf<SqlStore<PoolClient>>();

transferCallbackRouter({
  store,
  async onSuccess({ data }, { tx }) {
    expectTypeOf(tx).toEqualTypeOf<PoolClient>();
    await tx.query('INSERT INTO ledger VALUES ($1)', [data.id]);
  },
  onFailed: (_callback, { tx }) => tx.query<{ id: string }>('SELECT id FROM ledger'),
});

// A pool of one's own that declares `connect` once.
interface OwnClient {
  query(text: string): Promise<{ rows: unknown[] }>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean): void;
  mine: true;
}
declare const ownPool: { connect(): Promise<OwnClient> };
expectTypeOf(pgStore(ownPool, { idleTimeoutMs: null })).toEqualTypeOf<SqlStore<OwnClient>>();

// SQLite has no transaction for a handler.
expectTypeOf(sqlStore({ dialect: 'sqlite', query: () => [] })).toEqualTypeOf<SqlStore<undefined>>();

// A library of one's own.
interface OwnTx {
  run(sql: string): Promise<unknown[]>;
}
declare const own: OwnTx & { inTransaction(work: (tx: OwnTx) => Promise<void>): Promise<void> };
expectTypeOf(
  sqlStore({
    dialect: 'mysql',
    query: (sql, tx: OwnTx = own) => tx.run(sql),
    transaction: (work, { queueMs }) => {
      expectTypeOf(queueMs).toEqualTypeOf<number>();
      return own.inTransaction(work);
    },
  }),
).toEqualTypeOf<SqlStore<OwnTx>>();

// @ts-expect-error -- a client, not a pool.
pgStore({ query: () => Promise.resolve({ rows: [] }) });
// @ts-expect-error -- an address.
pgStore('postgres://127.0.0.1');
// @ts-expect-error -- misspelt.
pgStore(pool, { tableName: 'callbacks' });
// @ts-expect-error -- no transaction.
sqlStore({ dialect: 'postgres', query: () => [] });
