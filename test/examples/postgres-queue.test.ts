import { runMigrations } from 'graphile-worker';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Pool, PoolClient } from 'pg';
import PgBoss from 'pg-boss';
import { pgStore, type HandlerContext, type TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { handOff } from '../../examples/postgres-queue.js';
import { receiverOn, startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { root } from '../docs/pages.js';

type Handler = (callback: TransferCallback, context: HandlerContext<PoolClient>) => Promise<void>;

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  server = await startPostgres(18);
  pool = server.pool();
});
afterAll(() => server.stop());

const receiverWith = (handler: Handler) => receiverOn(pool, { onSuccess: handler, onFailed: handler });

describe('postgres-queue.ts', () => {
  beforeAll(async () => {
    await pgStore(pool).migrate();
    await runMigrations({ pgPool: pool });
  });

  async function jobsOf({ data }: TransferCallback): Promise<unknown[]> {
    const { rows } = await pool.query<object>(
      `SELECT identifier FROM graphile_worker._private_jobs AS jobs
        JOIN graphile_worker._private_tasks AS tasks ON tasks.id = jobs.task_id WHERE payload->>'externalId' = $1`,
      [data.externalId],
    );
    return rows;
  }

  test('runs the job of a callback that comes twice once', async () => {
    const env = { ...process.env, DATABASE_URL: server.url };
    const example = ['--import', 'tsx', 'examples/postgres-queue.ts'];
    const { stdout } = await promisify(execFile)(process.execPath, example, { cwd: root, env });
    expect(stdout).toMatch(/^The first delivery: processed\nThe second delivery: duplicate\nThe job of \S+ runs\.\n/);
    expect(stdout.match(/The job of/g)).toHaveLength(1);
  });

  test('each callback has one job, and a handler that throws leaves none', async () => {
    const callback = transferSucceeded();
    const failing = receiverWith(async (...given) => {
      await handOff(...given);
      throw new Error('after handing off');
    });
    expect((await failing.receive(callback)).outcome).toBe('handler_failed');
    expect(await jobsOf(callback)).toEqual([]);
    const receiver = receiverWith(handOff);
    const copies = Array.from({ length: 5 }, () => receiver.receive(callback));
    expect((await Promise.all(copies)).map(({ outcome }) => outcome).sort()).toEqual([
      ...Array<string>(4).fill('duplicate'),
      'processed',
    ]);
    expect(await jobsOf(callback)).toEqual([{ identifier: 'transfer.success' }]);
  });

  test('pg-boss joins the transaction through its db option, as the example shows', async () => {
    const boss = new PgBoss({ connectionString: server.url, schedule: false, supervise: false });
    // `stop` does not wait until its connections are closed: those that the server then ends are errors to it.
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue('payouts');
    const send: Handler = async ({ data }, { tx }) => {
      const db = { executeSql: (text: string, values: unknown[]) => tx.query(text, values) };
      await boss.send('payouts', { id: data.id }, { db });
    };
    const callback = transferSucceeded();
    const failing = receiverWith(async (...given) => {
      await send(...given);
      throw new Error('after sending');
    });
    expect((await failing.receive(callback)).outcome).toBe('handler_failed');
    expect(await boss.fetch('payouts')).toEqual([]);
    for (const outcome of ['processed', 'duplicate']) {
      expect((await receiverWith(send).receive(callback)).outcome).toBe(outcome);
    }
    expect(await boss.fetch('payouts', { batchSize: 5 })).toMatchObject([{ data: { id: callback.data.id } }]);
    await boss.stop({ graceful: false });
  });
});
