// The queues of examples/postgres-queue.ts in the versions that need Node 22. Node 20 has the older ones:
// test/examples.
import { runMigrations } from 'graphile-worker';
import { PgBoss } from 'pg-boss';
import { pgStore } from 'transfer-callbacks';
import { describe, test } from 'vitest';
import { expectOneJob, expectOneJobOfBoss } from '../examples/postgres-queue.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';

describe.skipIf(Number.parseInt(process.versions.node) < 22)('on Node 22 and later', () => {
  const server = startPostgresForFile((started) => pgStore(started.pool()).migrate());

  test('each callback has one job of graphile-worker 0.18, and a handler that throws leaves none', async () => {
    const pool = server.pool();
    await runMigrations({ pgPool: pool });
    await expectOneJob(pool);
  });

  test('pg-boss 12 joins the transaction through its db option', async () => {
    const boss = new PgBoss({ connectionString: server.url, schedule: false, supervise: false });
    await expectOneJobOfBoss(server.pool(), boss);
  });
});
