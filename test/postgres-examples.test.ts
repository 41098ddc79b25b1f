import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Pool, PoolClient } from 'pg';
import {
  postgresStore,
  transferCallbackReceiver,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { book as bookWithDrizzle } from '../examples/drizzle.js';
import { book as bookWithKysely } from '../examples/kysely.js';
import { startPostgres, type PostgresServer } from './support/postgres.js';

const root = fileURLToPath(new URL('..', import.meta.url));
let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres(18);
  pool = server.pool();
});
afterAll(() => server.stop());

describe.each([
  { example: 'drizzle.ts', book: bookWithDrizzle, table: 'payouts_drizzle' },
  { example: 'kysely.ts', book: bookWithKysely, table: 'payouts_kysely' },
])('$example', ({ example, book, table }) => {
  /** Runs the example as a user would; it also creates the table. */
  const run = (): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', `examples/${example}`], {
      cwd: root,
      env: { ...process.env, DATABASE_URL: server.url },
    });
  beforeAll(run);

  async function rowsOf({ data }: TransferCallback): Promise<unknown[]> {
    const { rows } = await pool.query<object>(`SELECT * FROM ${table} WHERE callback_id = $1`, [data.id]);
    return rows;
  }
  function receiverWith(handler: (callback: TransferCallback, context: HandlerContext<PoolClient>) => Promise<void>) {
    return transferCallbackReceiver({
      store: postgresStore(pool),
      onSuccess: handler,
      onFailed: handler,
      logger: false,
    });
  }

  test('books a callback that comes twice once, and ends; and does so again', async () => {
    const { stdout } = await run();
    expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\n\[\n {2}\{\n/);
    expect(stdout.match(/status: 'SUCCESS'/g)).toHaveLength(1);
  });

  test('a row is seen by others when the callback has been handled, and not before', async () => {
    const callback = transferSucceeded({ amount: 900.5 });
    const seenWithin: unknown[] = [];
    const receiver = receiverWith(async (given, context) => {
      await book(given, context);
      seenWithin.push(...(await rowsOf(given)));
    });
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect(seenWithin).toEqual([]);
    const { id, externalId } = callback.data;
    expect(await rowsOf(callback)).toEqual([
      { callback_id: id, external_id: externalId, status: 'SUCCESS', amount: '900.5' },
    ]);
  });

  test('a handler that writes and then throws leaves no row, and the next delivery books it', async () => {
    const callback = transferSucceeded();
    const failing = receiverWith(async (given, context) => {
      await book(given, context);
      throw new Error('after writing');
    });
    expect((await failing.receive(callback)).outcome).toBe('handler_failed');
    expect(await rowsOf(callback)).toEqual([]);

    expect((await receiverWith(book).receive(callback)).outcome).toBe('processed');
    expect(await rowsOf(callback)).toHaveLength(1);
  });
});
