import { runMigrations } from 'graphile-worker';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Pool } from 'pg';
import PgBoss from 'pg-boss';
import { pgStore } from 'transfer-callbacks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { root } from '../docs/pages.js';
import { expectOneJob, expectOneJobOfBoss } from './postgres-queue.js';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres(18);
  pool = server.pool();
});
afterAll(() => server.stop());

describe('postgres-queue.ts', () => {
  beforeAll(async () => {
    await pgStore(pool).migrate();
    await runMigrations({ pgPool: pool });
  });

  test('runs the job of a callback that comes twice once', async () => {
    const env = { ...process.env, DATABASE_URL: server.url };
    const example = ['--import', 'tsx', 'examples/postgres-queue.ts'];
    const { stdout } = await promisify(execFile)(process.execPath, example, { cwd: root, env });
    expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\nThe job of \S+ runs\.\n/);
    expect(stdout.match(/The job of/g)).toHaveLength(1);
  });

  test('each callback has one job, and a handler that throws leaves none', () => expectOneJob(pool));

  test('pg-boss joins the transaction through its db option, as the example shows', () =>
    expectOneJobOfBoss(pool, new PgBoss({ connectionString: server.url, schedule: false, supervise: false })));
});
