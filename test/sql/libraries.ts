import { expect, beforeAll, describe } from 'vitest';
import { claimFree } from '../stores/support.js';
import type { Dialect, Started, Database } from './databases.js';
import { drivers } from './drivers.js';
import { makeStore } from './factories.js';
import type { Library } from './opened.js';
import { sequelize, typeorm } from './orms.js';
import { prisma6, prisma7 } from './prisma.js';
import { drizzle, drizzleOnPostgresJs, knex, kysely } from './query-builders.js';

export const libraries: readonly Library[] = [
  ...drivers,
  prisma7,
  prisma6,
  drizzle,
  drizzleOnPostgresJs,
  kysely,
  knex,
  typeorm,
  sequelize,
];

type OnTestFinished = (end: () => Promise<void>) => void;

/** Returns the libraries that reach a database. `prepare` opens one for a test, with a store that has migrated. */
export function librariesOn(dialect: Dialect, server: Pick<Started, 'url'>) {
  return libraries.flatMap(({ name, open: { [dialect]: open } }) => {
    if (open === undefined) return [];
    const prepare = async (onTestFinished: OnTestFinished, max = 2, url = server.url) => {
      const opened = await open(url, max);
      onTestFinished(async () => {
        await opened.close();
      });
      const store = makeStore({ name }, opened.client, dialect);
      await store.migrate();
      // On SQLite there is no transaction, and no test asks for it.
      const { transaction } = opened as Required<typeof opened>;
      /** Expects that the next delivery handles a callback, and that it is written once in the end. */
      const expectNext = async (id: string): Promise<void> => {
        const next = await claimFree(store, { token: 'the next' }, id);
        await transaction.write(next.tx, id);
        await next.settle();
        expect(await transaction.count(id)).toBe(1);
      };
      return { ...opened, store, transaction, expectNext };
    };
    return [{ name, open, prepare }];
  });
}

/** `SQL_DATABASES='PostgreSQL 18,SQLite'` tries those alone. */
const chosen = process.env.SQL_DATABASES?.split(',');

/** Makes tests for each of the databases, which has started, and has a URL, when they run. */
export function describeDatabases(
  databases: readonly Database[],
  makeTests: (database: Database, server: Pick<Started, 'url'>) => void,
): void {
  for (const database of databases) {
    describe.runIf(chosen?.includes(database.name) ?? true)(database.name, () => {
      const server = { url: '' };
      beforeAll(async () => {
        const started = await database.start();
        server.url = started.url;
        return () => started.stop();
      });
      makeTests(database, server);
    });
  }
}
