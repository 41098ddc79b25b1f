// Exactly once in Postgres: what a merchant writes by hand, and the package's store. The handler does one insert, in
// the transaction of the record, on a pool of the same size.
import express from 'express';
import { Pool } from 'pg';
import { path, secret } from '../callback.mjs';
import { packageUnderTest } from '../package.mjs';
import { schema } from './schema.mjs';
import { serve } from './serve.mjs';

const [, , kind] = process.argv;
const pool = new Pool({ connectionString: process.env.POSTGRES_URL, max: 16 });
const app = express();

async function handle({ data }, tx) {
  await tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, data.amount]);
}

if (kind === 'by hand') {
  app.use(express.json());
  app.post(path, async (request, response) => {
    const parsed = schema.safeParse(request.body);
    if (!parsed.success) {
      response.sendStatus(400);
      return;
    }
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      const { rowCount } = await client.query('INSERT INTO handled VALUES ($1) ON CONFLICT DO NOTHING', [
        parsed.data.data.id,
      ]);
      if (rowCount === 1) await handle(parsed.data, client);
      await client.query('COMMIT');
      response.sendStatus(200);
    } catch {
      await client.query('ROLLBACK');
      response.sendStatus(500);
    } finally {
      client.release();
    }
  });
} else {
  const { postgresStore, transferCallbackRouter, urlToken } = packageUnderTest;
  const onSuccess = (callback, { tx }) => handle(callback, tx);
  const options = { store: postgresStore(pool), verify: urlToken(secret), onSuccess, onFailed: onSuccess };
  app.use('/callbacks/transfers', transferCallbackRouter(options));
}
serve(app);
