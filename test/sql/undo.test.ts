// What becomes of a failed handler whose ROLLBACK the client of the library has dropped.
import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Knex } from 'knex';
import type { PrismaClient } from 'prisma-postgresql';
import type { Sequelize } from 'sequelize';
import type { DataSource } from 'typeorm';
import { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, test } from 'vitest';
import type { NodePgDatabase } from 'drizzle-orm/node-postgres';
import type { Pool } from 'pg';
import { expectNothingKept, impatience, nextUsers, waiting } from '../stores/undo-support.js';
import { databases } from './databases.js';
import { makeStore } from './factories.js';
import { libraries } from './libraries.js';

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

let server: { readonly url: string; stop(): Promise<void> };
beforeAll(async () => {
  const postgres = databases.find(({ name }) => name === 'PostgreSQL 18');
  if (postgres === undefined) throw new Error('no PostgreSQL');
  server = await postgres.start();
});
afterAll(() => server.stop());

for (const library of libraries) {
  const runOwn = transactions[library.name];
  const open = library.open.postgres;
  if (open === undefined || runOwn === undefined) continue;
  for (const max of [1, 2]) {
    test(`nothing is kept of a failed handler of ${library.name} whose ROLLBACK was dropped, with a pool of ${max}`, async ({
      expect,
    }) => {
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
