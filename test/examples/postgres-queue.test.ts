import { runMigrations, runOnce } from 'graphile-worker';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Pool } from 'pg';
import PgBoss from 'pg-boss';
import { pgStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { handOff, tasks } from '../../examples/postgres-queue.js';
import { receiverOn, startPostgres, type PostgresServer } from '../support/servers/postgres.js';
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

  test('works on the job of a failure as on the job of a success', async () => {
    const receiver = receiverOn(pool, { onSuccess: handOff, onFailed: handOff });
    for (const callback of [transferSucceeded(), transferFailed()]) {
      expect((await receiver.receive(callback)).outcome).toBe('processed');
    }
    await runOnce({ pgPool: pool, taskList: tasks });
    expect((await pool.query('SELECT FROM graphile_worker._private_jobs')).rowCount).toBe(0);
  });

  test('pg-boss joins the transaction through its db option, as the example shows', () =>
    expectOneJobOfBoss(pool, new PgBoss({ connectionString: server.url, schedule: false, supervise: false })));
});
