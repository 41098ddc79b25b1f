import type { Pool } from 'pg';
import { postgresStore, transferCallbackReceiver } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { later } from '../core/support.js';
import { keepRecords } from '../support/kept.js';
import {
  book,
  majors,
  poolBehindProxy,
  receiverOn,
  startLedger,
  type Ledger,
  type PostgresServer,
} from '../support/postgres.js';

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;
  let bookings: Ledger['bookings'];

  beforeAll(async () => {
    ({ server, pool, bookings } = await startLedger({ major, max: 100 }));
  });
  afterAll(() => server.stop());

  test('a claim returns its client to the pool although the database has stopped replying', async () => {
    const { own, proxy } = await poolBehindProxy(server);
    const receiver = receiverOn(own, { storeTimeoutMs: 1_500, leaseMs: 4_600 });
    await keepRecords(receiver);
    expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
    proxy.fallSilent();
    const callback = transferFailed();
    expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
    await vi.waitFor(() => {
      expect(own.totalCount).toBe(0);
    });
    expect(await bookings(callback.data.id)).toEqual([]);
  });

  test('a commit returns its client to the pool although the database has stopped replying', async () => {
    const { own, proxy } = await poolBehindProxy(server);
    const callback = transferSucceeded();
    const receiver = receiverOn(own, {
      storeTimeoutMs: 1_500,
      leaseMs: 20_000,
      async onSuccess(...given) {
        await book(...given);
        proxy.fallSilent();
      },
    });
    expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
    await vi.waitFor(() => {
      expect(own.totalCount).toBe(0);
    });
    expect(await bookings(callback.data.id)).toEqual([]);
  });

  test('a connection that Postgres ends aborts the handler and writes nothing, and the next delivery is processed', async () => {
    const callback = transferSucceeded();
    const own = server.pool({ max: 1 });
    const aborted = later<unknown>();
    const receiver = receiverOn(own, {
      storeTimeoutMs: 1_000,
      leaseMs: 3_100,
      async onSuccess(given, context) {
        await book(given, context);
        context.signal.addEventListener('abort', () => {
          aborted.resolve(context.signal.reason);
        });
        const { rows } = await context.tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        await pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
        await aborted.promise;
      },
    });
    expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
    expect(await aborted.promise).toMatchObject({ code: 'LEASE_LOST' });
    expect(await bookings(callback.data.id)).toEqual([]);
    expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
    expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  });

  test('Postgres ends a transaction that is idle for longer than idleTimeoutMs, and a statement that exceeds statementTimeoutMs', async () => {
    const own = server.pool();
    const silent = transferSucceeded();
    const idle = transferCallbackReceiver({
      store: postgresStore(own, { idleTimeoutMs: 500 }),
      logger: false,
      onFailed: () => undefined,
      async onSuccess() {
        await vi.waitUntil(() => own.totalCount === 0);
      },
    });
    expect((await idle.receive(silent)).outcome).toBe('store_unavailable');
    const slow = transferCallbackReceiver({
      store: postgresStore(own, { statementTimeoutMs: 2_000 }),
      logger: false,
      onFailed: () => undefined,
      onSuccess: (_callback, { tx }) => tx.query('SELECT pg_sleep(60)'),
    });
    expect(await slow.receive(transferSucceeded())).toMatchObject({
      outcome: 'handler_failed',
      error: expect.objectContaining({ code: '57014' }) as unknown,
    });
  });

  test('two hundred deliveries on a pool of two clients are all processed, and no client is lost', async () => {
    const small = server.pool({ max: 2 });
    const receiver = receiverOn(small, { storeTimeoutMs: 5_000, leaseMs: 20_000 });
    const callbacks = Array.from({ length: 200 }, () => transferSucceeded());
    const outcomes = await Promise.all(callbacks.map((callback) => receiver.receive(callback)));
    expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(['processed']));
    expect([small.waitingCount, small.idleCount <= 2]).toEqual([0, true]);
  });

  test('of fifty copies of one callback one runs, and the others wait without a client of the pool', async () => {
    const small = server.pool({ max: 2 });
    const callback = transferSucceeded();
    const goOn = later();
    const receiver = receiverOn(small, {
      async onSuccess(...given) {
        await goOn.promise;
        await book(...given);
      },
    });
    const copies = Promise.all(Array.from({ length: 50 }, () => receiver.receive(callback)));
    // Another callback gets through between them.
    expect((await receiver.receive(transferFailed())).outcome).toBe('processed');
    goOn.resolve();
    const outcomes = (await copies).map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'processed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(49);
    expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  });

  test('deliveries end within inFlightWaitMs or storeTimeoutMs when the pool is exhausted, and the pool recovers', async () => {
    const small = server.pool({ max: 2 });
    const goOn = later();
    const receiver = receiverOn(small, {
      inFlightWaitMs: 200,
      storeTimeoutMs: 1_000,
      onSuccess: () => goOn.promise,
    });
    const holding = [receiver.receive(transferSucceeded()), receiver.receive(transferSucceeded())];
    await vi.waitFor(() => {
      expect(small.totalCount - small.idleCount).toBe(2);
    });
    const refused = await Promise.all(Array.from({ length: 50 }, () => receiver.receive(transferFailed())));
    expect(new Set(refused.map(({ outcome }) => outcome))).toEqual(new Set(['store_unavailable']));
    expect(Math.max(...refused.map(({ durationMs }) => durationMs))).toBeLessThan(9_000); // The default of inFlightWaitMs is 10 000.
    goOn.resolve();
    expect((await Promise.all(holding)).map(({ outcome }) => outcome)).toEqual(['processed', 'processed']);
    await vi.waitFor(() => {
      expect(small.waitingCount).toBe(0);
    });
    expect((await receiver.receive(transferFailed())).outcome).toBe('processed');
  });
});
