// A pool of pg is taken by its shape, and the handlers get its client without an annotation.
import type { Pool, PoolClient } from 'pg';
import { expectTypeOf } from 'vitest';
import { postgresStore, transferCallbackRouter, type PgPool, type PostgresStore } from 'transfer-callbacks';

declare const pool: Pool;
expectTypeOf<Pool>().toExtend<PgPool>();
const store = postgresStore(pool, { schema: 'payouts' });
expectTypeOf(store).toEqualTypeOf<PostgresStore<PoolClient>>();

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
expectTypeOf(postgresStore(ownPool)).toEqualTypeOf<PostgresStore<OwnClient>>();

postgresStore(pool, { statementTimeoutMs: null, idleTimeoutMs: null });

// @ts-expect-error -- a client, not a pool.
postgresStore({ query: () => Promise.resolve({ rows: [] }) });
// @ts-expect-error -- an address.
postgresStore('postgres://127.0.0.1');
// @ts-expect-error -- misspelt.
postgresStore(pool, { tableName: 'callbacks' });
