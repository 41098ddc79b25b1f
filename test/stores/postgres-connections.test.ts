import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Pool } from 'pg';
import { postgresStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { blockEventLoop } from '../support/block.js';
import { forkApp, hasEnded, kill } from '../support/child.js';
import type { PostgresAppOptions } from '../support/postgres-app.js';
import { book, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';
import { requestOf } from './support.js';

let server: PostgresServer;
let pool: Pool;
let bookings: Ledger['bookings'];
const children: ReturnType<typeof forkApp>[] = [];

beforeAll(async () => {
  ({ server, pool, bookings } = await startLedger({ max: 20 }));
});
afterEach(async () => {
  await Promise.all(children.splice(0).map(kill));
});
afterAll(() => server.stop());

function startApp(options: Omit<PostgresAppOptions, 'url'>): ReturnType<typeof forkApp> {
  const app = forkApp('postgres-app.ts', 'POSTGRES_APP', { url: server.url, ...options });
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
  await server.restart();
  // An idle connection that has ended is noticed at the next use at the latest.
  await vi.waitFor(async () => {
    app.send('receive');
    expect(await nextMessage(app)).toBe('duplicate');
  });
  expect(hasEnded(app)).toBe(false);
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
  await expect(postgresStore(own).claim(randomUUID(), requestOf('a'))).rejects.toThrow();
  fake.close();
  await own.end();
});

test('a claim is granted whose reply came in time while the event loop was busy', async () => {
  const own = server.pool({ max: 1 });
  const store = postgresStore(own);
  const opened = await own.connect();
  opened.release();
  const claiming = store.claim(randomUUID(), { ...requestOf('a', 4_000), timeoutMs: 200 });
  // The query has been sent once the pool has called back.
  await new Promise<void>((resolve) => {
    process.nextTick(resolve);
  });
  await Promise.resolve();
  // Longer than timeoutMs, and long enough for PostgreSQL to reply on a busy machine.
  blockEventLoop(2_000);
  const claim = await claiming;
  expect(claim.state).toBe('claimed');
  if (claim.state === 'claimed') expect(await claim.lease.settle()).toEqual({ overlapped: false });
});

test('the callback of a process that freezes in its handler is free after idleTimeoutMs', async () => {
  const id = randomUUID();
  const app = startApp({ id, hang: true, idleTimeoutMs: 5_000 });
  expect(await nextMessage(app)).toBe('ready');
  app.send('receive');
  expect(await nextMessage(app)).toBe('handling');
  app.kill('SIGSTOP');
  const store = postgresStore(pool);
  expect((await store.claim(id, requestOf('before'))).state).toBe('in_progress');
  await vi.waitFor(
    async () => {
      expect((await store.claim(id, requestOf('after'))).state).toBe('claimed');
    },
    { interval: 100 },
  );
});

test.each([
  ['by default is shorter than the pause before the first retry', {}, ['25s', '30s']],
  ['is left to the connection if null', { idleTimeoutMs: null, statementTimeoutMs: null }, ['7s', '8s']],
])('the limit of an idle transaction %s', async (_title, options, expected) => {
  const own = server.pool({ max: 1, options: '-c idle_in_transaction_session_timeout=7s -c statement_timeout=8s' });
  const seen: unknown[] = [];
  const receiver = receiverOn(
    own,
    {
      async onSuccess(_callback, { tx }) {
        for (const name of ['idle_in_transaction_session_timeout', 'statement_timeout']) {
          const { rows } = await tx.query<Record<string, string>>(`SHOW ${name}`);
          seen.push(rows[0]?.[name]);
        }
      },
    },
    options,
  );
  expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
  expect(seen).toEqual(expected);
});

test('a rollback without a reply is reported, and its connection is not used again', async () => {
  const impatient = server.pool({ max: 1, query_timeout: 2_000 });
  const backends: number[] = [];
  const warned: string[] = [];
  const receiver = receiverOn(impatient, {
    storeTimeoutMs: 9_000,
    leaseMs: 29_000,
    logger: { warn: (_details, message) => warned.push(message), error: () => undefined },
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
  } finally {
    for (const pid of backends) process.kill(pid, 'SIGCONT');
  }
  expect(warned[0]).toContain('could not be released');
  await vi.waitUntil(async () => (await receiver.receive(callback)).outcome === 'processed');
  expect(await bookings(callback.data.id)).toHaveLength(1);
});

test('a driver that throws when it is asked for its transaction status works', async () => {
  const older = server.pool({ max: 1 });
  older.on('connect', (client) => {
    Object.assign(client, {
      getTransactionStatus() {
        throw new Error('not supported');
      },
    });
  });
  const callback = transferSucceeded();
  expect(await receiverOn(older).receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(await bookings(callback.data.id)).toHaveLength(1);
});
