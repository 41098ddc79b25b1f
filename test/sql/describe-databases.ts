import { beforeAll, describe } from 'vitest';
import type { Database, Started } from './databases.js';

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
