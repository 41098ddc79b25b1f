import { randomUUID } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import { postgresStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { keepRecords } from '../support/kept.js';
import { book, receiverOn, startLedger, type PostgresServer } from '../support/postgres.js';
import { requestOf } from './support.js';
import { containing } from '../support/containing.js';

let server: PostgresServer;
let pool: Pool;

beforeAll(async () => {
  ({ server, pool } = await startLedger({ max: 20 }));
});
afterAll(() => server.stop());

const clientOf = (lease: { tx: PoolClient }): Promise<number | undefined> =>
  lease.tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid').then(({ rows }) => rows[0]?.pid);

test('the store adds one listener for errors to a pool that has none', () => {
  const [heard, unheard] = [new Pool(), new Pool()];
  heard.on('error', () => undefined);
  for (const given of [heard, unheard, unheard]) postgresStore(given);
  expect([heard.listenerCount('error'), unheard.listenerCount('error')]).toEqual([1, 1]);
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
    store.claim(randomUUID(), { ...requestOf('a'), timeoutMs: 5, queueMs: 99.6193 }),
  );
  for (const claim of await Promise.allSettled(claims)) {
    expect(claim).toMatchObject({
      status: 'rejected',
      reason: { code: 'STORE_TIMEOUT', message: containing('The pool had no client within 100 ms.') },
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

test('after the first one a fresh callback costs two messages and one listener, and a duplicate costs two messages', async () => {
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
  const id = randomUUID();
  // The first lease that is over notes since when records are kept.
  const receiver = receiverOn(own);
  await keepRecords(receiver);
  const { store, retentionMs } = receiver.options;
  const free = await own.connect();
  sent = 0;
  const listeners = (): number => client?.listenerCount('error') ?? 0;
  const before = listeners();
  free.release();
  const claim = await store.claim(id, { ...requestOf('a'), retentionMs });
  if (claim.state !== 'claimed') throw new Error(claim.state);
  expect([sent, listeners() - before]).toEqual([1, 1]);
  await claim.lease.settle();
  expect(sent).toBe(2);
  expect((await store.claim(id, { ...requestOf('b'), retentionMs })).state).toBe('settled');
  expect(sent).toBe(4);
});

describe('a callback that this process holds', () => {
  test('claims of a callback that this process holds take no client of the pool, and starve no timer', async () => {
    const own = server.pool({ max: 1 });
    const store = postgresStore(own);
    const id = randomUUID();
    const held = await store.claim(id, requestOf('a', 1_500));
    expect(held.state).toBe('claimed');
    // The pool has no other client: were one needed, this would wait forever.
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
    const receiver = receiverOn(own);
    // Otherwise the end of the claim would connect again, to note since when records are kept.
    await keepRecords(receiver);
    const { store, retentionMs } = receiver.options;
    const id = randomUUID();
    const claim = await store.claim(id, { ...requestOf('a'), retentionMs });
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
