import { Pool } from 'pg';
import { pgStore, transferCallbackReceiver } from 'transfer-callbacks/web';

function makePayouts() {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL });
  const store = pgStore(pool);
  const receiver = transferCallbackReceiver({
    store,
    onSuccess: ({ data }, { tx }) => tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, data.status]),
    onFailed: ({ data }, { tx }) => tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, data.status]),
  });
  return { pool, store, receiver };
}

const shared = globalThis as { payouts?: ReturnType<typeof makePayouts> };
export const { pool, store, receiver } = (shared.payouts ??= makePayouts());
