// What the time limits of clients do. The `query_timeout` of pg gives up a BEGIN whose reply is late. Some libraries then
// give the connection back with the transaction open, or not at all.
import { randomUUID } from 'node:crypto';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import createKnex, { type Knex } from 'knex';
import { Pool } from 'pg';
import { drizzleStore, knexStore, pgStore, typeormStore, type SqlStore } from 'transfer-callbacks';
import { DataSource } from 'typeorm';
import { expect, test, beforeAll } from 'vitest';
import { type Kysely, CompiledQuery } from 'kysely';
import type { PrismaClient } from 'prisma-postgresql';
import type { Sequelize } from 'sequelize';
import { request } from '../stores/support.js';
import { containing } from '../support/helpers/containing.js';
import { expectNothingKept, impatience, nextUsers, waiting } from '../stores/undo-support.js';
import { databases, type Started } from './databases.js';
import { makeStore } from './factories.js';
import { libraries } from './libraries.js';

let server: Started;
beforeAll(async () => {
  server = await (databases.find(({ name }) => name === 'PostgreSQL 18') ?? expect.fail('no PostgreSQL')).start();
  const pool = new Pool({ connectionString: server.url });
  await pgStore(pool).migrate();
  await pool.end();
  return () => server.stop();
});

interface Made {
  readonly store: SqlStore<unknown>;
  readonly close: () => unknown;
}

const dialect = 'postgres';
const makers: Readonly<Record<string, (connectionString: string, options: object) => Made | Promise<Made>>> = {
  Drizzle(connectionString, options) {
    const pool = new Pool({ connectionString, ...options });
    return { store: drizzleStore(drizzle(pool), { dialect }), close: () => pool.end() };
  },
  Knex(connectionString, options) {
    const isPlain = Object.keys(options).length === 0;
    const knex = createKnex({
      client: 'pg',
      connection: isPlain ? connectionString : { connectionString, ...options },
    });
    return { store: knexStore(knex, { dialect }), close: () => knex.destroy() };
  },
  async TypeORM(url, extra) {
    const source = await new DataSource({ type: 'postgres', url, extra }).initialize();
    return { store: typeormStore(source, { dialect }), close: () => source.destroy() };
  },
};

test.each(Object.entries(makers))('check warns of the `query_timeout` of a driver under %s', async (_name, make) => {
  const harmful = [containing('The driver has a `query_timeout`.')];
  for (const [parameters, options, warnings] of [
    ['', {}, []],
    ['?query_timeout=9000', {}, harmful],
    ['', { query_timeout: 9_000 }, harmful],
    ['?statement_timeout=9000', { query_timeout: 0, statement_timeout: 9_000 }, []],
  ] as const) {
    const { store, close } = await make(`${server.url}${parameters}`, options);
    expect([parameters, options, await store.check?.(crypto.randomUUID(), request)]).toEqual([
      parameters,
      options,
      warnings,
    ]);
    await close();
  }
});

// What becomes of a failed handler whose ROLLBACK the client of the library has dropped.

/** A transaction of the app's, in each library whose client may have a time limit of its own. */
const transactions: Readonly<Record<string, (client: never) => PromiseLike<unknown>>> = {
  pg: runOnPool,
  '@neondatabase/serverless': runOnPool,
  'Prisma 7': runOnPrisma,
  'Prisma 6': runOnPrisma,
  Drizzle: (db: NodePgDatabase) => db.transaction((tx) => tx.execute('SELECT 1')),
  Kysely: (db: Kysely<unknown>) => db.transaction().execute((tx) => tx.executeQuery(CompiledQuery.raw('SELECT 1'))),
  Knex: (db: Knex) => db.transaction((tx) => tx.raw('SELECT 1')),
  TypeORM: (source: DataSource) => source.transaction((tx) => tx.query('SELECT 1')),
  Sequelize: (sequelize: Sequelize) =>
    sequelize.transaction((transaction) => sequelize.query('SELECT 1', { transaction })),
};

async function runOnPool(pool: Pool): Promise<void> {
  const client = await pool.connect();
  await client.query('BEGIN; SELECT 1; COMMIT');
  client.release();
}

function runOnPrisma(prisma: PrismaClient): Promise<unknown> {
  return prisma.$transaction((tx) => tx.$queryRawUnsafe('SELECT 1'), { maxWait: 10_000 });
}

for (const library of libraries) {
  const runOwn = transactions[library.name];
  const open = library.open.postgres;
  if (open === undefined || runOwn === undefined) continue;
  for (const max of [1, 2]) {
    test(`nothing is kept of a failed handler of ${library.name} whose ROLLBACK was dropped, with a pool of ${max}`, async () => {
      const play = async (waits: (typeof waiting)[number], next: (typeof nextUsers)[number]): Promise<void> => {
        const { client, transaction, close } = await open(`${server.url}${impatience}`, max);
        const table = `callbacks_${randomUUID().slice(0, 8)}`;
        const store = makeStore(library, client, 'postgres', { table });
        await store.migrate();
        const subject = { store, table, transaction: transaction ?? expect.fail('no transaction'), maxHeldMs: 500 };
        await expectNothingKept(server.url, { ...subject, runOwn: () => runOwn(client as never) }, waits, next);
        await close();
      };
      await Promise.all(waiting.flatMap((waits) => nextUsers.map((next) => play(waits, next))));
    });
  }
}
