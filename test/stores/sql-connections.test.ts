import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Pool } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { storeContract, transferSucceeded } from 'transfer-callbacks/testing';
import { afterEach, expect, test, vi } from 'vitest';
import { blockEventLoop } from '../support/helpers/runtime.js';
import { forkApp, hasEnded, kill } from '../support/programs/child.js';
import type { Failure, FailingAppReport } from '../support/programs/failing-app.js';
import type { PostgresAppOptions } from '../support/programs/postgres-app.js';
import { startPgBouncer } from '../support/servers/pgbouncer.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { book, contractTransaction, poolBehindProxy, receiverOn } from '../support/servers/postgres.js';
import { claimFree, requestOf } from './support.js';

const ledger = startLedgerForFile({ max: 20 });

const children: ReturnType<typeof forkApp>[] = [];
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
});

function startApp(options: Omit<PostgresAppOptions, 'url'>): ReturnType<typeof forkApp> {
  const app = forkApp('postgres-app.ts', { url: ledger.server.url, ...options });
  children.push(app);
  return app;
}

/** What the app sends next, or `exit` if it ends instead. */
function nextMessage(app: ReturnType<typeof forkApp>): Promise<unknown> {
  return new Promise((resolve) => {
    const ended = (): void => {
      resolve('exit');
    };
    app.once('exit', ended);
    app.once('message', (message) => {
      app.off('exit', ended);
      resolve(message);
    });
  });
}

test('a process with the lines of docs/stores.md survives a restart of the database, and processes callbacks after it', async () => {
  const app = startApp({ id: randomUUID() });
  expect(await nextMessage(app)).toBe('ready');
  app.send('receive');
  expect(await nextMessage(app)).toBe('processed');
  await ledger.server.restart();
  // An idle connection that has ended is noticed at the next use at the latest.
  await vi.waitFor(async () => {
    app.send('receive');
    expect(await nextMessage(app)).toBe('duplicate');
  });
  expect(hasEnded(app)).toBe(false);
});

test('the callback of a process that freezes in its handler is free after idleTimeoutMs, and its late success is not kept', async () => {
  const id = randomUUID();
  const app = startApp({ id, hang: true, idleTimeoutMs: 2_000 });
  expect(await nextMessage(app)).toBe('ready');
  app.send('receive');
  expect(await nextMessage(app)).toBe('handling');
  app.kill('SIGSTOP');
  const callback = transferSucceeded({ id, externalId: id });
  expect((await pgStore(ledger.pool).claim(id, requestOf('before'))).state).toBe('in_progress');
  await vi.waitFor(async () => {
    expect((await receiverOn(ledger.pool, { inFlightWaitMs: 0 }).receive(callback)).outcome).toBe('processed');
  });
  app.kill('SIGCONT');
  app.send('go on');
  expect(await nextMessage(app)).toBe('store_unavailable');
  expect(await ledger.bookings(id)).toEqual(['SUCCESS']);
});

test('a claim is over if its connection has ended before the process reads the reply', async () => {
  const own = ledger.server.pool({ max: 1 });
  await own.query('SELECT 1');
  const claiming = pgStore(own, { idleTimeoutMs: 50 }).claim(randomUUID(), requestOf('frozen'));
  // The client sends the claim in this turn. PostgreSQL replies and ends the session while this process is frozen.
  await new Promise((resolve) => setImmediate(resolve));
  blockEventLoop(1_000);
  const isHeld = claiming.then(
    (reply) => (reply.state === 'claimed' ? () => reply.claim.renew() : expect.fail(reply.state)),
    () => () => Promise.resolve(false),
  );
  await vi.waitFor(async () => {
    expect(await (await isHeld)()).toBe(false);
  });
});

test.each([
  ['by default is shorter than the pause before the first retry', {}, '25s'],
  ['is left to the connection if null', { idleTimeoutMs: null }, '7s'],
])('the limit of an idle transaction %s', async (_title, options, expected) => {
  const own = ledger.server.pool({ max: 1, options: '-c idle_in_transaction_session_timeout=7s' });
  const seen: unknown[] = [];
  const receiver = receiverOn(
    own,
    {
      async onSuccess(_callback, { tx }) {
        const { rows } = await tx.query<object>('SHOW idle_in_transaction_session_timeout');
        seen.push(...rows);
      },
    },
    options,
  );
  expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
  expect(seen).toEqual([{ idle_in_transaction_session_timeout: expected }]);
});

/** Runs an app whose handlers fail like this. Returns how the process ended, what it reported and what it printed. */
async function runFailingApp(failures: Failure[]) {
  const app = forkApp('failing-app.ts', { url: ledger.server.url, failures }, 'pipe');
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
  // pg warns of a handler that sends a query before the reply to another.
  return { printed: printed.replaceAll(/^\(.*(DeprecationWarning|trace-deprecation).*\n/gm, ''), report, exitCode };
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
    'throws, and sends a query later': 'handler_failed',
    'fails when its connection has broken beside its query': 'handler_failed',
    'returns beside a query that Postgres refuses': 'store_unavailable',
    'returns beside its query': 'processed',
    'returns beside a ROLLBACK that is refused': 'processed',
    'returns beside end()': 'processed',
  };
  expect(await runFailingApp(Object.keys(outcomes) as Failure[])).toEqual({
    printed: '',
    report: { ...outcomes, other: 'processed' },
    exitCode: 0,
  });
});

test('a connection that is ended in the packet that opens it rejects the claim, and does not end the process', async () => {
  // The startup of PostgreSQL: authenticated, ready, and in the same packet a fatal error.
  const message = (type: string, body: string): Buffer => {
    const bytes = Buffer.from(`${type}\0\0\0\0${body}`, 'latin1');
    bytes.writeInt32BE(bytes.length - 1, 1);
    return bytes;
  };
  const opening = Buffer.concat([
    message('R', '\0\0\0\0'),
    message('Z', 'I'),
    message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'),
  ]);
  const fake = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(opening));
  }).listen(0, '127.0.0.1');
  await once(fake, 'listening');
  const own = new Pool({ host: '127.0.0.1', port: (fake.address() as AddressInfo).port, user: 'x', password: 'x' });
  await expect(pgStore(own).claim(randomUUID(), requestOf('a'))).rejects.toThrow();
  fake.close();
  await own.end();
});

test('a connection that PostgreSQL ends under a handler aborts it immediately and keeps nothing of it, and the next delivery is processed', async () => {
  const callback = transferSucceeded();
  const own = ledger.server.pool({ max: 1 });
  const leaseMs = 29_000;
  const noticed: unknown[] = [];
  const receiver = receiverOn(own, {
    leaseMs,
    async onSuccess(given, context) {
      await book(given, context);
      const { rows } = await context.tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      const aborted = once(context.signal, 'abort');
      const endedAt = performance.now();
      await ledger.pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
      await aborted;
      noticed.push(context.signal.reason, performance.now() - endedAt < leaseMs / 6);
    },
  });
  expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
  expect(noticed).toMatchObject([{ code: 'LEASE_LOST' }, true]);
  expect(await ledger.bookings(callback.data.id)).toEqual([]);
  expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test.each(['claim', 'commit'] as const)(
  'a connection that falls silent at the %s goes out of the pool, and the next delivery is processed',
  async (at) => {
    const { own, proxy } = await poolBehindProxy(ledger.server);
    const callback = transferSucceeded();
    const receiver = receiverOn(own, {
      storeTimeoutMs: 1_000,
      leaseMs: 3_100,
      inFlightWaitMs: 0,
      async onSuccess(...given) {
        await book(...given);
        if (at === 'commit') proxy.fallSilent();
      },
    });
    if (at === 'claim') {
      const client = await own.connect();
      client.release();
      proxy.fallSilent();
    }
    expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
    await vi.waitFor(() => {
      expect([own.totalCount, own.waitingCount]).toEqual([0, 0]);
    });
    expect(await ledger.bookings(callback.data.id)).toEqual([]);
    await vi.waitFor(async () => {
      expect((await receiverOn(ledger.pool, { inFlightWaitMs: 0 }).receive(callback)).outcome).toBe('processed');
    });
    expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
  },
);

test('a connection whose backend is frozen at the rollback goes out of the pool, and keeps the claim until it goes on', async () => {
  const own = ledger.server.pool({ max: 1 });
  const backends: number[] = [];
  const receiver = receiverOn(own, {
    leaseMs: 6_100,
    onSuccess: vi.fn(book).mockImplementationOnce(async (_callback, { tx }) => {
      const { rows } = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      for (const { pid } of rows) backends.push(pid);
      for (const pid of backends) process.kill(pid, 'SIGSTOP');
      throw new Error('the handler fails');
    }),
  });
  const callback = transferSucceeded();
  try {
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'handler_failed' });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'in_progress' });
  } finally {
    for (const pid of backends) process.kill(pid, 'SIGCONT');
  }
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a claim is granted whose reply came in time while the event loop was busy', async () => {
  const own = ledger.server.pool({ max: 1 });
  (await own.connect()).release();
  const claiming = claimFree(pgStore(own), { leaseMs: 4_000, timeoutMs: 200 });
  // The query has been sent once the pool has called back.
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
  await Promise.resolve();
  // Longer than timeoutMs, and long enough for PostgreSQL to reply on a busy machine.
  blockEventLoop(2_000);
  const claim = await claiming;
  expect(await claim.settle()).toEqual({ overlapped: false });
});

test('through a PgBouncer that pools by transaction, the stores of two pools keep the contract', async () => {
  const bouncer = await startPgBouncer(ledger.server, { connections: 60 });
  const [one, other] = [1, 2].map(() => new Pool({ connectionString: bouncer.url, max: 60 }));
  if (one === undefined || other === undefined) throw new Error('no pools');
  try {
    const transaction = await contractTransaction(ledger.pool);
    const failures: string[] = [];
    for (const { title, check } of storeContract) {
      await check(pgStore(one), { other: pgStore(other), transaction }).catch((error: unknown) => {
        failures.push(`${title}: ${String(error)}`);
      });
    }
    expect(failures).toEqual([]);
    // By session each client would have a connection of its own.
    const readPid = async (pool: Pool) => (await pool.query('SELECT pg_backend_pid()')).rows as unknown[];
    expect(await readPid(one)).toEqual(await readPid(other));
  } finally {
    await Promise.all([one.end(), other.end()]);
    await bouncer.stop();
  }
});
