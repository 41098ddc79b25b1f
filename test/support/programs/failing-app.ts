// A merchant's process in which handlers fail in named ways, one after the other, while another delivery is running.
import { Pool, Query, type PoolClient } from 'pg';
import { pgStore, RetryLater, transferCallbackReceiver } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { readAppOptions } from './app.js';

/** The outcome of each failure, and of the `other` delivery. The app sends it each time that it grows. */
export type FailingAppReport = Partial<Record<Failure | 'other', string>>;

export type Failure = keyof typeof handlers;

const long = 'SELECT pg_sleep(60)';
const fails = (): Promise<never> => Promise.reject(new Error('no mail today'));
const ignore = (): void => undefined;

const handlers = {
  throws(tx: PoolClient) {
    void tx.query(long);
    throw new Error('the handler fails');
  },
  'asks to be called later'(tx: PoolClient) {
    void tx.query(long);
    throw new RetryLater('not now');
  },
  async 'fails beside its query'(tx: PoolClient) {
    const booked = tx.query(long);
    await fails();
    await booked;
  },
  async 'fails beside two queries'(tx: PoolClient) {
    const booked = [tx.query('SELECT 1'), tx.query(long)];
    await fails();
    await Promise.all(booked);
  },
  async 'fails beside a function that awaits its query'(tx: PoolClient) {
    const bookIt = async (): Promise<void> => {
      await tx.query('SELECT pg_sleep(0.05)');
    };
    const booked = bookIt();
    await fails();
    await booked;
  },
  async 'fails, and the query is in Promise.allSettled'(tx: PoolClient) {
    const booked = Promise.allSettled([tx.query(long)]);
    await fails();
    await booked;
  },
  'throws beside a query with a callback'(tx: PoolClient) {
    tx.query(long, ignore);
    throw new Error('the handler fails');
  },
  'throws beside a query object'(tx: PoolClient) {
    tx.query(new Query(long));
    throw new Error('the handler fails');
  },
  async 'fails when its connection has broken beside its query'(tx: PoolClient) {
    const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    void tx.query(long);
    // The client may report it before the reply to the next query has come.
    const broken = new Promise((resolve) => tx.on('error', resolve));
    await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
    await broken;
    throw new Error('the handler fails');
  },
  'returns beside a query that Postgres refuses'(tx: PoolClient) {
    void tx.query('SELECT 1/0');
  },
  'returns beside its query'(tx: PoolClient) {
    void tx.query('SELECT pg_sleep(0.05)');
  },
  'returns beside end()'(tx: PoolClient) {
    void (tx as unknown as { end(): Promise<void> }).end();
  },
  'throws, and sends a query later'(tx: PoolClient) {
    sendLater = () => void tx.query('SELECT 1');
    throw new Error('the handler fails');
  },
  'returns beside a ROLLBACK that is refused'(tx: PoolClient) {
    void tx.query('ROLLBACK');
  },
} satisfies Record<string, (tx: PoolClient) => unknown>;

const { url, failures } = readAppOptions() as { url: string; failures: readonly Failure[] };
const pool = new Pool({ connectionString: url, max: 3 });
const failing = new Map<string, Failure>();

let sendLater: () => void = ignore;
let goOn: () => void = ignore;
const haveFailed = new Promise<void>((resolve) => {
  goOn = resolve;
});

const receiver = transferCallbackReceiver({
  store: pgStore(pool),
  logger: false,
  async onSuccess({ data }, { tx }) {
    const failure = failing.get(data.id);
    if (failure !== undefined) await handlers[failure](tx);
    else {
      await haveFailed;
      await tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.id, data.status]);
    }
  },
  onFailed: ignore,
});

const report: FailingAppReport = {};
const other = receiver.receive(transferSucceeded());
for (const failure of failures) {
  const callback = transferSucceeded();
  failing.set(callback.data.id, failure);
  report[failure] = (await receiver.receive(callback)).outcome;
  process.send?.(report);
}
sendLater();
goOn();
report.other = (await other).outcome;
// No query runs any more that could still fail.
await pool.end();
process.send?.(report);
process.disconnect();
