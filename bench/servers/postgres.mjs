// Exactly once in Postgres: what a merchant writes by hand, and the package's store. The handler does one insert, in
// the transaction of the record, on a pool of the same size.
import express from 'express';
import { Pool } from 'pg';
import { path, secret } from '../callback.mjs';
import { packageUnderTest } from '../package.mjs';
import { handle } from './handler.mjs';
import { schema } from './schema.mjs';
import { serve } from './serve.mjs';

const [, , kind] = process.argv;
const pool = new Pool({ connectionString: process.env.POSTGRES_URL, max: Number(process.env.POOL ?? 16) });
// Without a listener a lost connection would end the process.
pool.on('error', () => undefined);

async function book(data, tx) {
  await tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.externalId, data.amount]);
  await handle(data);
}

const record = {
  /** The least that a record can be. */
  'one column': (data) => ['INSERT INTO handled VALUES ($1) ON CONFLICT DO NOTHING', [data.id]],
  /** The row that the package writes, in a table like its own. */
  'same row': (data, event) => [
    `INSERT INTO handled_rows VALUES ($1, $2, $3, $4, now(), now() + interval '7 days') ON CONFLICT DO NOTHING`,
    [data.id, event, data.externalId, JSON.stringify([data.status, data.amount, data.currency, data.externalId])],
  ],
}[kind];

async function byHand(request, response) {
  const parsed = schema.safeParse(request.body);
  if (!parsed.success) {
    response.sendStatus(400);
    return;
  }
  const { data, event } = parsed.data;
  const client = await pool.connect();
  let lost;
  const onError = (error) => (lost = error);
  client.on('error', onError);
  try {
    await client.query('BEGIN');
    const { rowCount } = await client.query(...record(data, event));
    if (rowCount === 1) await book(data, client);
    await client.query('COMMIT');
    response.sendStatus(200);
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    lost ??= error.code === undefined ? undefined : error;
    response.sendStatus(500);
  } finally {
    client.off('error', onError);
    client.release(lost);
  }
}

const app = express();
if (record === undefined) {
  const { postgresStore, transferCallbackListener, transferCallbackRouter, urlToken } = packageUnderTest;
  const onSuccess = ({ data }, { tx }) => book(data, tx);
  const options = {
    store: postgresStore(pool),
    verify: urlToken(secret),
    onSuccess,
    onFailed: onSuccess,
    ...(process.env.HANDLER === 'told' && { logger: false }),
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
