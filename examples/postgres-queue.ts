import { fileURLToPath } from 'node:url';
import { runMigrations, runOnce, type TaskList } from 'graphile-worker';
import { Pool, type PoolClient } from 'pg';
import { pgStore, transferCallbackReceiver, type HandlerContext, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';

/**
 * Hands the work to graphile-worker in the transaction of the claim: the job and the record of the callback are
 * committed together, so that each callback has exactly one job. It needs no key of the job, by which the queue would
 * drop a second one. Use it for work that takes longer than the service waits, or needs more than the service's four
 * attempts. The worker retries it for as long as you like. With pg-boss the call is
 * `boss.send(queue, data, { db: { executeSql: (text, values) => tx.query(text, values) } })`.
 */
export async function handOff({ event, data }: TransferCallback, { tx }: HandlerContext<PoolClient>): Promise<void> {
  await tx.query('SELECT graphile_worker.add_job($1, $2::json, max_attempts => 25)', [
    event,
    JSON.stringify({ externalId: data.externalId, amount: data.amount }),
  ]);
}

/** Runs the jobs, in this process or another. A job may run again after a failure: make it idempotent. */
export const tasks: TaskList = {
  'transfer.success': runJob,
  // A job without a task waits without an error, and this one refunds.
  'transfer.failed': runJob,
};

function runJob(payload: unknown): void {
  const { externalId } = payload as { externalId: string };
  console.log(`The job of ${externalId} runs.`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://localhost/postgres' });
  const store = pgStore(pool);
  await store.migrate();
  await runMigrations({ pgPool: pool });

  const receiver = transferCallbackReceiver({ store, onSuccess: handOff, onFailed: handOff });
  const callback = transferSucceeded();
  for (const delivery of ['first', 'second']) {
    console.log(`The ${delivery} delivery: ${(await receiver.receive(callback)).outcome}`);
  }
  await runOnce({ pgPool: pool, taskList: tasks });
  await pool.end();
}
