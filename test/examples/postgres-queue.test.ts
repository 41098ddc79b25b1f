import { runMigrations, runOnce } from 'graphile-worker';
import PgBoss from 'pg-boss';
import { pgStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, test } from 'vitest';
import { handOff, tasks } from '../../examples/postgres-queue.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';
import { receiverOn } from '../support/servers/postgres.js';
import { expectOneJob, expectOneJobOfBoss } from './postgres-queue.js';
import { run } from './support.js';

const server = startPostgresForFile(async (started) => {
  await pgStore(started.pool()).migrate();
  await runMigrations({ pgPool: started.pool() });
});

describe('postgres-queue.ts', () => {
  test('runs the job of a callback that comes twice once', async () => {
    const { exitCode, output } = run('postgres-queue.ts', { DATABASE_URL: server.url });
    expect(await exitCode).toBe(0);
    expect(output()).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\nThe job of \S+ runs\.\n/);
    expect(output().match(/The job of/g)).toHaveLength(1);
  });

  test('each callback has one job, and a handler that throws leaves none', () => expectOneJob(server.pool()));

  test('works on the job of a failure as on the job of a success', async () => {
    const pool = server.pool();
    const receiver = receiverOn(pool, { onSuccess: handOff, onFailed: handOff });
    for (const callback of [transferSucceeded(), transferFailed()]) {
      expect((await receiver.receive(callback)).outcome).toBe('processed');
    }
    await runOnce({ pgPool: pool, taskList: tasks });
    expect((await pool.query('SELECT FROM graphile_worker._private_jobs')).rowCount).toBe(0);
  });

  test('pg-boss joins the transaction through its db option, as the example shows', () =>
    expectOneJobOfBoss(server.pool(), new PgBoss({ connectionString: server.url, schedule: false, supervise: false })));
});
