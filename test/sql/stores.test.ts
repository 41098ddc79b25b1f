import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as stores from 'transfer-callbacks';
import type { SqlStore } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databases, type Dialect } from './databases.js';
import { root } from '../docs/pages.js';
import { libraries } from './libraries.js';

type Make = (client: never, options: { dialect: Dialect }) => unknown;

/** The factory of each library, and how SQLite's own drivers are passed to `sqlStore`. */
const factories: Readonly<Record<string, Make>> = {
  pg: (client) => stores.pgStore(client),
  '@neondatabase/serverless': (client) => stores.pgStore(client),
  'postgres.js': (client) => stores.postgresJsStore(client),
  mysql2: (client) => stores.mysqlStore(client),
  'better-sqlite3': (file: { prepare: (sql: string) => { reader: boolean; all: () => unknown; run: () => unknown } }) =>
    stores.sqlStore({
      dialect: 'sqlite',
      query(sql) {
        const statement = file.prepare(sql);
        return statement.reader ? statement.all() : statement.run();
      },
    }),
  'Prisma 7': stores.prismaStore,
  'Prisma 6': stores.prismaStore,
  Drizzle: stores.drizzleStore,
  Kysely: stores.kyselyStore,
  Knex: stores.knexStore,
  TypeORM: stores.typeormStore,
  Sequelize: stores.sequelizeStore,
};

for (const { name, dialect, start } of databases) {
  describe(name, () => {
    let server: Awaited<ReturnType<typeof start>>;
    beforeAll(async () => {
      server = await start();
    });
    afterAll(() => server.stop());

    for (const library of libraries) {
      const open = library.open[dialect];
      if (open === undefined) continue;
      // They wait most of the time, for leases. A contract holds up to 16 claims, in turn through its two pools.
      test.concurrent(
        `the store of ${library.name} keeps the contract`,
        async ({ expect, onTestFinished }) => {
          const [one, two] = await Promise.all([open(server.url, 14), open(server.url, 14)]);
          onTestFinished(async () => {
            await Promise.all([one.close(), two.close()]);
          });
          const [store, other] = [one, two].map(({ client }) =>
            factories[library.name]?.(client as never, { dialect }),
          ) as [SqlStore<unknown>, SqlStore<unknown>];
          await store.migrate();
          const failures: string[] = [];
          for (const { title, check } of storeContract) {
            await check(store, { other, transaction: one.transaction }).catch((error: unknown) => {
              failures.push(`${title}: ${String(error)}`);
            });
          }
          expect(failures).toEqual([]);
        },
        120_000,
      );
    }
  });
}

test('every file of test/sql compiles', async () => {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, '-p', 'test/sql'], { cwd: root }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe('');
});
