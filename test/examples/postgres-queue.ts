import { expect } from 'vitest';
import type { Pool, PoolClient } from 'pg';
import type { HandlerContext, TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { handOff } from '../../examples/postgres-queue.js';
import { receiverOn } from '../support/servers/postgres.js';

// What a job in the transaction of the claim must do, on any version of the two queues.

type Handler = (callback: TransferCallback, context: HandlerContext<PoolClient>) => Promise<void>;

/** What is called of pg-boss. */
export interface Boss {
  on(name: 'error', listener: (error: Error) => void): unknown;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<unknown>;
  createQueue(name: string): Promise<unknown>;
  send(name: string, data: object, options: { db: Database }): Promise<unknown>;
  fetch(name: string, options?: { batchSize: number }): Promise<unknown>;
}

interface Database {
  executeSql(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Throws after the handler has done its work. */
const failing = (handler: Handler): Handler =>
  async function failAfter(...given) {
    await handler(...given);
    throw new Error('after handing off');
  };

const receiverWith = (pool: Pool, handler: Handler) => receiverOn(pool, { onSuccess: handler, onFailed: handler });

/** Expects one job of graphile-worker for each callback, and none of a handler that throws. Its tables are there. */
export async function expectOneJob(pool: Pool): Promise<void> {
  async function jobsOf({ data }: TransferCallback): Promise<unknown[]> {
    const { rows } = await pool.query<object>(
      `SELECT identifier FROM graphile_worker._private_jobs AS jobs
        JOIN graphile_worker._private_tasks AS tasks ON tasks.id = jobs.task_id WHERE payload->>'externalId' = $1`,
      [data.externalId],
    );
    return rows;
  }
  const callback = transferSucceeded();
  expect((await receiverWith(pool, failing(handOff)).receive(callback)).outcome).toBe('handler_failed');
  expect(await jobsOf(callback)).toEqual([]);
  const receiver = receiverWith(pool, handOff);
  const copies = Array.from({ length: 5 }, () => receiver.receive(callback));
  expect((await Promise.all(copies)).map(({ outcome }) => outcome).sort()).toEqual([
    ...Array<string>(4).fill('duplicate'),
    'processed',
  ]);
  expect(await jobsOf(callback)).toEqual([{ identifier: 'transfer.success' }]);
}

/** Expects the same of pg-boss, which joins the transaction through its option `db`, as the example shows. */
export async function expectOneJobOfBoss(pool: Pool, boss: Boss): Promise<void> {
  // `stop` does not wait until its connections are closed: those that the server then ends are errors to it.
  boss.on('error', () => undefined);
  await boss.start();
  await boss.createQueue('payouts');
  const send: Handler = async ({ data }, { tx }) => {
    await boss.send('payouts', { id: data.id }, { db: { executeSql: (text, values) => tx.query(text, values) } });
  };
  const callback = transferSucceeded();
  expect((await receiverWith(pool, failing(send)).receive(callback)).outcome).toBe('handler_failed');
  expect(await boss.fetch('payouts')).toEqual([]);
  for (const outcome of ['processed', 'duplicate']) {
    expect((await receiverWith(pool, send).receive(callback)).outcome).toBe(outcome);
  }
  expect(await boss.fetch('payouts', { batchSize: 5 })).toMatchObject([{ data: { id: callback.data.id } }]);
  await boss.stop({ graceful: false });
}
