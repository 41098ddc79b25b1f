import { once } from 'node:events';
import type { Pool } from 'pg';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { forkApp, kill } from '../support/child.js';
import type { Failure, FailingAppReport } from '../support/failing-app.js';
import { book, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';

const children: ReturnType<typeof forkApp>[] = [];
let server: PostgresServer;
let pool: Pool;
let bookings: Ledger['bookings'];

beforeAll(async () => {
  ({ server, pool, bookings } = await startLedger({ max: 5 }));
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
});
afterAll(() => server.stop());

/** Runs an app whose handlers fail like this. Returns how the process ended, what it reported and what it printed. */
async function runApp(...failures: Failure[]) {
  const app = forkApp('failing-app.ts', 'FAILING_APP', { url: server.url, failures }, 'pipe');
  children.push(app);
  let report: FailingAppReport | undefined;
  let printed = '';
  app.on('message', (message) => {
    report = message as FailingAppReport;
  });
  app.stderr?.on('data', (data) => {
    printed += String(data);
  });
  const [exitCode] = (await once(app, 'close')) as [number | null];
  return { printed, report, exitCode };
}

test('a handler that fails, or returns, while one of its queries runs ends neither the process nor another delivery', async () => {
  const outcomes: FailingAppReport = {
    throws: 'handler_failed',
    'asks to be called later': 'retry_later',
    'fails beside its query': 'handler_failed',
    'fails beside two queries': 'handler_failed',
    'fails beside a function that awaits its query': 'handler_failed',
    'fails, and the query is in Promise.allSettled': 'handler_failed',
    'throws beside a query with a callback': 'handler_failed',
    'throws beside a query object': 'handler_failed',
    'fails when its connection has broken beside its query': 'handler_failed',
    'returns beside a query that Postgres refuses': 'store_unavailable',
    'returns beside its query': 'processed',
    'returns beside end()': 'processed',
  };
  expect(await runApp(...(Object.keys(outcomes) as Failure[]))).toEqual({
    printed: '',
    report: { ...outcomes, other: 'processed' },
    exitCode: 0,
  });
});

test.each<[Failure, string, string | undefined]>([
  ['throws, and sends a query later', 'LEASE_LOST', 'handler_failed'],
  ['returns beside a ROLLBACK that is refused', 'TRANSACTION_CONTROL', undefined],
  ['returns beside a query that pg refuses', 'TypeError', undefined],
])(
  'a process ends whose handler %s and does not await it: nothing else would report it',
  async (failure, error, outcome) => {
    expect(await runApp(failure)).toMatchObject({
      printed: expect.stringContaining(error) as string,
      report: outcome === undefined ? undefined : { [failure]: outcome },
      exitCode: 1,
    });
  },
);

test('a statement that a failed handler has left running holds up neither its response nor the pool', async () => {
  const own = server.pool({ max: 1 });
  const callback = transferFailed();
  const receiver = receiverOn(own, {
    storeTimeoutMs: 9_000,
    leaseMs: 29_000,
    async onFailed(given, { tx }) {
      await book(given, { tx });
      tx.query('SELECT pg_sleep(50)').catch(() => undefined);
      throw new Error('one branch of two');
    },
  });
  const { outcome, durationMs } = await receiver.receive(callback);
  expect(outcome).toBe('handler_failed');
  expect(durationMs).toBeLessThan(8_900); // Less than storeTimeoutMs.
  expect(own.totalCount).toBe(0);
  const sleeping = await pool.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%(50)'`);
  expect(sleeping.rowCount).toBeGreaterThan(0);
  await vi.waitFor(async () => {
    expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
  });
  expect(await bookings(callback.data.id)).toEqual(['FAILED']);
});

test('a failed handler whose last statement ends soon costs the pool no connection', async () => {
  const own = server.pool({ max: 1 });
  const callback = transferSucceeded();
  const booked: Promise<unknown>[] = [];
  const receiver = receiverOn(own, {
    async onSuccess(given, { tx }) {
      const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      backends.push(rows[0]?.pid);
      if (booked.push(book(given, { tx })) === 1) throw new Error('one branch of two');
    },
  });
  const backends: unknown[] = [];
  expect((await receiver.receive(callback)).outcome).toBe('handler_failed');
  expect(await Promise.allSettled(booked)).toMatchObject([{ status: 'fulfilled' }]);
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(new Set(backends).size).toBe(1);
  expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
});
