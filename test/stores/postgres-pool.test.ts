import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { Pool, type PoolClient } from 'pg';
import { postgresStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { blockEventLoop } from '../support/block.js';
import { forkApp, hasEnded, kill } from '../support/child.js';
import type { PostgresAppOptions } from '../support/postgres-app.js';
import { book, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';

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

function requestOf(token: string, leaseMs = 30_000) {
  return { token, fingerprint: 'facts', leaseMs, retentionMs: 100_000 };
}

const clientOf = (lease: { tx: PoolClient }): Promise<number | undefined> =>
  lease.tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid').then(({ rows }) => rows[0]?.pid);

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

test('the store adds one listener for errors to a pool that has none', () => {
  const [heard, unheard] = [new Pool(), new Pool()];
  heard.on('error', () => undefined);
  for (const given of [heard, unheard, unheard]) postgresStore(given);
  expect([heard.listenerCount('error'), unheard.listenerCount('error')]).toEqual([1, 1]);
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

test('a pool whose connect only returns a promise works', async () => {
  const adapter = { connect: () => pool.connect() };
  const store = postgresStore(adapter);
  const id = randomUUID();
  const claim = await store.claim(id, requestOf('a'));
  if (claim.state !== 'claimed') throw new Error(claim.state);
  await claim.lease.settle();
  expect((await store.claim(id, requestOf('b'))).state).toBe('settled');
  const failing = { connect: () => Promise.reject(new Error('no client today')) };
  await expect(postgresStore(failing).claim(id, requestOf('a'))).rejects.toThrow('no client today');
});

test('a claim queues for a client up to queueMs and then rejects, and a client granted later goes back', async () => {
  const own = server.pool({ max: 1 });
  const store = postgresStore(own);
  const holder = await own.connect();
  const claims = Array.from({ length: 5_000 }, () =>
    store.claim(randomUUID(), { ...requestOf('a'), timeoutMs: 5, queueMs: 100 }),
  );
  for (const claim of await Promise.allSettled(claims)) {
    expect(claim).toMatchObject({
      status: 'rejected',
      reason: { code: 'STORE_TIMEOUT', message: 'The pool had no client within 100 ms.' },
    });
  }
  const queued = store.claim(randomUUID(), { ...requestOf('a'), timeoutMs: 5_000, queueMs: 20_000 });
  expect(own.waitingCount).toBe(5_001);
  holder.release();
  const claim = await queued;
  expect(claim.state).toBe('claimed');
  if (claim.state === 'claimed') await claim.lease.release();
  expect([own.waitingCount, own.idleCount]).toEqual([0, 1]);
});

test('a burst that outlasts storeTimeoutMs many times is processed at the first attempt', async () => {
  const own = server.pool({ max: 4 });
  const receiver = receiverOn(own, {
    storeTimeoutMs: 1_500,
    inFlightWaitMs: 25_000,
    async onSuccess(...given) {
      await book(...given);
      await new Promise((resolve) => setTimeout(resolve, 120));
    },
  });
  const callbacks = Array.from({ length: 100 }, () => transferSucceeded());
  const outcomes = await Promise.all(callbacks.map((callback) => receiver.receive(callback)));
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['processed']));
  expect(Math.max(...outcomes.map(({ durationMs }) => durationMs))).toBeGreaterThan(1_500);
  expect([own.waitingCount, own.idleCount]).toEqual([0, 4]);
});

test('a fresh callback costs two messages and one listener of its client, and a duplicate costs two messages', async () => {
  const own = server.pool({ max: 1 });
  let sent = 0;
  let client: PoolClient | undefined;
  own.on('connect', (connected) => {
    client = connected;
    const query = connected.query.bind(connected) as (...args: unknown[]) => unknown;
    Object.assign(connected, {
      query(...args: unknown[]): unknown {
        sent += 1;
        return query(...args);
      },
    });
  });
  const store = postgresStore(own);
  const id = randomUUID();
  const free = await own.connect();
  const listeners = (): number => client?.listenerCount('error') ?? 0;
  const before = listeners();
  free.release();
  const claim = await store.claim(id, requestOf('a'));
  if (claim.state !== 'claimed') throw new Error(claim.state);
  expect([sent, listeners() - before]).toEqual([1, 1]);
  await claim.lease.settle();
  expect(sent).toBe(2);
  expect((await store.claim(id, requestOf('b'))).state).toBe('settled');
  expect(sent).toBe(4);
});

describe('a callback that this process holds', () => {
  test('claims of a callback that this process holds take no client of the pool, and starve no timer', async () => {
    const own = server.pool({ max: 1 });
    const store = postgresStore(own);
    const id = randomUUID();
    const held = await store.claim(id, requestOf('a', 1_500));
    expect(held.state).toBe('claimed');
    // The pool has no other client: were one needed, this would wait for ever.
    let asked = 0;
    for (let state = 'in_progress'; state === 'in_progress'; asked += 1) {
      const claim = await store.claim(id, requestOf('b'));
      ({ state } = claim);
      if (claim.state === 'claimed') await claim.lease.release();
    }
    expect(asked).toBeGreaterThan(1);
  });

  test('a connection that ends frees its client and its callback without waiting for the lease', async () => {
    const own = server.pool({ max: 1 });
    const store = postgresStore(own);
    const id = randomUUID();
    const claim = await store.claim(id, requestOf('a'));
    if (claim.state !== 'claimed') throw new Error(claim.state);
    await pool.query('SELECT pg_terminate_backend($1)', [await clientOf(claim.lease)]);
    await vi.waitFor(async () => {
      expect(await claim.lease.renew()).toBe(false);
    });
    expect(own.totalCount).toBe(0);
    await claim.lease.release();
    await expect(claim.lease.settle()).rejects.toMatchObject({ code: 'LEASE_LOST' });
    await vi.waitFor(async () => {
      expect((await store.claim(id, requestOf('b'))).state).toBe('claimed');
    });
  });
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

test('the store warns once of handlers that wait for the pool which their claims have exhausted', async () => {
  const own = server.pool({ max: 2 });
  const warnings: unknown[] = [];
  const listen = ({ code, message }: Error & { code?: string }): void => {
    if (code?.startsWith('TRANSFER_CALLBACKS_') === true) warnings.push(code, message);
  };
  process.on('warning', listen);
  const receiver = receiverOn(own, {
    storeTimeoutMs: 2_000,
    leaseMs: 6_100,
    handlerTimeoutMs: 4_000,
    async onSuccess(...given) {
      await book(...given);
      await own.query('SELECT 1');
    },
  });
  const ended = Promise.all([transferSucceeded(), transferSucceeded()].map((callback) => receiver.receive(callback)));
  expect((await ended).map(({ outcome }) => outcome)).toEqual(['timed_out', 'timed_out']);
  process.off('warning', listen);
  expect(warnings).toEqual([
    'TRANSFER_CALLBACKS_POSTGRES_POOL_EXHAUSTED',
    'Claims hold all 2 clients of the pool, and 2 callers wait for one. A handler that uses the pool itself waits for ' +
      'the claims: use `context.tx`, or another pool. If none does, raise `max`.',
  ]);
  // Frees the handlers.
  await own.query('SELECT 1').catch(() => undefined);
}, 60_000);

test('a statement that a failed handler has left running delays neither its response nor the pool', async () => {
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

test('a connection with standard_conforming_strings off stores every text unchanged', async () => {
  const own = server.pool({ max: 1, options: '-c standard_conforming_strings=off' });
  const callback = transferSucceeded({ id: `'\\ é 付款 ${randomUUID()}` });
  expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
  expect((await receiverOn(pool).receive(callback)).outcome).toBe('duplicate');
});

test('a role without the right to create tables can call migrate if the table exists', async () => {
  const role = `app_${randomUUID().slice(0, 8)}`;
  await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'app';
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    GRANT SELECT, INSERT, UPDATE, DELETE ON transfer_callbacks, ledger TO ${role}`);
  const url = new URL(server.url);
  url.username = role;
  url.password = 'app';
  const own = server.pool({ connectionString: url.href });
  const store = postgresStore(own);
  await store.migrate();
  expect((await receiverOn(own).receive(transferSucceeded())).outcome).toBe('processed');
  expect(await store.prune({ olderThanMs: 90_001 })).toBe(0);
  await expect(postgresStore(own, { table: 'not_there' }).migrate()).rejects.toMatchObject({ code: '42501' });
});

test('prune does not wait for a claim, and takes any age', async () => {
  const table = 'prune_and_claim';
  const store = postgresStore(pool, { table });
  await store.migrate();
  await pool.query(`INSERT INTO ${table} SELECT id, '', '', '', now() - interval '2 days', now()
    FROM unnest(ARRAY['expired', 'other']) AS id`);
  const claim = await store.claim('expired', requestOf('a'));
  if (claim.state !== 'claimed') throw new Error(claim.state);
  expect(await store.prune({ olderThanMs: 90_001 })).toBe(1);
  expect(await store.prune({ olderThanMs: Number.MAX_SAFE_INTEGER })).toBe(0);
  expect(await claim.lease.settle()).toEqual({ overlapped: false });
  expect((await store.claim('expired', requestOf('b'))).state).toBe('settled');
});

test('of twenty concurrent claims on an expired record one is granted, and the others do not wait for it', async () => {
  const table = 'expired';
  const stores = Array.from({ length: 20 }, () => postgresStore(pool, { table }));
  await stores[0]?.migrate();
  await pool.query(`INSERT INTO ${table} VALUES ('x', '', '', '', now() - interval '2 days', now())`);
  const claims = await Promise.all(stores.map((store, index) => store.claim('x', requestOf(String(index)))));
  const [claimed, ...more] = claims.filter((claim) => claim.state === 'claimed');
  expect([more.length, claims.filter(({ state }) => state === 'in_progress').length]).toEqual([0, 19]);
  await claimed?.lease.settle();
  expect((await postgresStore(pool, { table }).claim('x', requestOf('next'))).state).toBe('settled');
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
