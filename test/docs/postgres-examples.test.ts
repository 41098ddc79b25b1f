import type { Pool, PoolClient } from 'pg';
import type { TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import knexFactory from 'knex';
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely';
import { DataSource } from 'typeorm';
import { book as bookWithDrizzle } from '../../examples/drizzle.js';
import { book as bookWithKnex } from '../../examples/knex.js';
import { book as bookWithKysely } from '../../examples/kysely.js';
import type * as TypeormExample from '../../examples/typeorm.js';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { handlingWith, runOn, type Handler } from './run-postgres-example.js';

let server: PostgresServer;
let pool: Pool;
let bookWithTypeorm: (typeof TypeormExample)['book'];

beforeAll(async () => {
  server = await startPostgres(18);
  pool = server.pool();
  // It connects by itself, to where this points when it is loaded.
  vi.stubEnv('DATABASE_URL', server.url);
  ({ book: bookWithTypeorm } = await import('../../examples/typeorm.js'));
});
afterAll(() => server.stop());

const run = (example: string) => runOn(server, example);
const receiverWith = (handler: Handler) => handlingWith(pool, handler);

describe.each([
  { example: 'drizzle.ts', book: bookWithDrizzle, table: 'payouts_drizzle' },
  { example: 'kysely.ts', book: bookWithKysely, table: 'payouts_kysely' },
  { example: 'knex.ts', book: bookWithKnex, table: 'payouts_knex' },
  {
    example: 'typeorm.ts',
    book: ((...given) => bookWithTypeorm(...given)) satisfies Handler,
    table: 'payouts_typeorm',
  },
])('$example', ({ example, book, table }) => {
  beforeAll(() => run(example));

  async function rowsOf({ data }: TransferCallback): Promise<unknown[]> {
    const { rows } = await pool.query<object>(`SELECT * FROM ${table} WHERE callback_id = $1`, [data.id]);
    return rows;
  }

  test('the example books a callback that comes twice once, and exits, in repeated runs', async () => {
    const { stdout } = await run(example);
    expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\n\[\n {2}\w*\s?\{\n/);
    expect(stdout.match(/status: 'SUCCESS'/g)).toHaveLength(1);
  });

  test('a row is visible to others only after the callback has been handled', async () => {
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

type Work = (query: (text: string) => Promise<unknown>) => Promise<void>;

describe("an ORM's own transaction within that of the claim", () => {
  const knex = knexFactory({ client: 'pg' });
  const orm = new DataSource({ type: 'postgres' });

  beforeAll(() => pool.query('CREATE TABLE notes (callback text, note text)'));

  test.each<[string, (tx: PoolClient, work: Work) => Promise<void>]>([
    ['Drizzle', (tx, work) => drizzle(tx).transaction((nested) => work((text) => nested.execute(sql.raw(text))))],
    [
      'Kysely',
      (tx, work) =>
        new Kysely<object>({
          dialect: new PostgresDialect({
            pool: { connect: () => Promise.resolve(tx), end: () => Promise.resolve() },
          }),
        })
          .transaction()
          .execute((nested) => work((text) => kyselySql.raw(text).execute(nested))),
    ],
    ['Knex', (tx, work) => knex.transaction((nested) => work(async (text) => nested.raw(text)), { connection: tx })],
    [
      'TypeORM',
      (tx, work) =>
        Object.assign(orm.createQueryRunner(), { databaseConnection: tx }).manager.transaction((manager) =>
          work((text) => manager.query(text)),
        ),
    ],
  ])('%s: a rollback undoes its own writes and no others', async (_orm, inTransaction) => {
    const callback = transferSucceeded();
    const { id } = callback.data;
    const write = (note: string): string => `INSERT INTO notes VALUES ('${id}', '${note}')`;
    const receiver = receiverWith(async (_callback, { tx }) => {
      await inTransaction(tx, async (query) => {
        await query(write('committed'));
      });
      const failing = inTransaction(tx, async (query) => {
        await query(write('rolled back'));
        throw new Error('this part only');
      });
      await expect(failing).rejects.toThrow('this part only');
    });
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect((await pool.query('SELECT note FROM notes WHERE callback = $1', [id])).rows).toEqual([
      { note: 'committed' },
    ]);
    expect((await receiver.receive(callback)).outcome).toBe('duplicate');
  });
});
