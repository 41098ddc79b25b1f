// Exactly once in Postgres: what a merchant writes by hand, and the package's store. The handler does one insert, in
// the transaction of the record, on a pool of the same size.
import express from 'express';
import { Pool } from 'pg';
import { packageUnderTest, path, secret } from '../callback.mjs';
import { handle, isTold, schema, serve } from './serve.mjs';

const [, , kind] = process.argv;
const pool = new Pool({ connectionString: process.env.POSTGRES_URL, max: 16 });

async function book(data, tx) {
  await tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, data.amount]);
  await handle(data);
}

/** Inserts the row that the package writes, into a table like its own. */
const recordSql = `INSERT INTO handled_rows VALUES ($1, $2, $3, $4, $5, $6, $6, $7) ON CONFLICT DO NOTHING`;
let received = 0;
function toRecord({ event, data: { id, externalId, status, amount, currency } }) {
  const now = Date.now();
  const token = `${new Date(now).toISOString()}/merchant/${process.pid}/${++received}`;
  const fingerprint = JSON.stringify([status, amount, currency, externalId]);
  return [id, token, event, externalId, fingerprint, now, now + 7 * 86_400_000];
}

async function byHand(request, response) {
  const parsed = schema.safeParse(request.body);
  if (!parsed.success) {
    response.sendStatus(400);
    return;
  }
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const { rowCount } = await client.query(recordSql, toRecord(parsed.data));
    if (rowCount === 1) await book(parsed.data.data, client);
    await client.query('COMMIT');
    response.sendStatus(200);
  } catch {
    await client.query('ROLLBACK');
    response.sendStatus(500);
  } finally {
    client.release();
  }
}

const app = express();
if (kind !== 'same row') {
  const { pgStore, transferCallbackListener, transferCallbackRouter, urlToken } = packageUnderTest;
  const onSuccess = ({ data }, { tx }) => book(data, tx);
  const options = {
    store: pgStore(pool),
    verify: urlToken(secret),
    onSuccess,
    onFailed: onSuccess,
    ...(isTold && { logger: false }),
  };
  if (kind === 'router') serve(app.use('/callbacks/transfers', transferCallbackRouter(options)));
  else serve(transferCallbackListener(options));
} else {
  app.use(express.json());
  app.post(path, byHand);
  app.use((_error, _request, response, _next) => {
    response.sendStatus(500);
  });
  serve(app);
}
