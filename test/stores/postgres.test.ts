import { randomUUID } from 'node:crypto';
import { Client, type Pool } from 'pg';
import { postgresStore, transferCallbackReceiver } from 'transfer-callbacks';
import { inspectionContract, storeContract, transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { lookUpSql } from '../../src/stores/postgres-sql.js';
import { later } from '../core/support.js';
import {
  book,
  poolBehindProxy,
  postgresMajors,
  receiverOn,
  startLedger,
  type Ledger,
  type PostgresMajor,
  type PostgresServer,
} from '../support/postgres.js';

const majors = Object.keys(postgresMajors).map(Number) as PostgresMajor[];

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;
  let bookings: Ledger['bookings'];

  beforeAll(async () => {
    ({ server, pool, bookings } = await startLedger({ major, max: 100 }));
  });
  afterAll(() => server.stop());

  describe('the PostgreSQL store keeps the contracts', () => {
    test.concurrent.each(storeContract)('$title', ({ check }) => check(postgresStore(pool)));
    test.concurrent.each(inspectionContract)('$title', ({ check }) => check(postgresStore(pool)));
  });

  test('the writes of a handler and the record are committed together', async () => {
    const callback = transferSucceeded();
    const { id, externalId } = callback.data;
    expect(await receiverOn(pool).receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
    expect(await bookings(id)).toEqual(['SUCCESS']);
    const { rows } = await pool.query('SELECT * FROM transfer_callbacks WHERE id = $1', [id]);
    expect(rows).toEqual([
      {
        id,
        event: 'transfer.success',
        external_id: externalId,
        fingerprint: `["SUCCESS",15000,"XAF","${externalId}"]`,
        settled_at: expect.any(Date) as Date,
        expires_at: expect.any(Date) as Date,
      },
    ]);
    const [{ settled_at: settledAt, expires_at: expiresAt }] = rows as [{ settled_at: Date; expires_at: Date }];
    // Inserted with the claim: the second more is for the time until it is settled. Written anew if that takes longer.
    expect([604_801_000, 604_800_000]).toContain(expiresAt.getTime() - settledAt.getTime());
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('duplicate');
    expect((await receiverOn(pool).receive(transferFailed({ id, externalId }))).outcome).toBe('conflict');
    expect(await bookings(id)).toEqual(['SUCCESS']);
  });

  test('the writes of a handler that fails are rolled back, and the next delivery runs it again', async () => {
    const callback = transferFailed();
    const failing = receiverOn(pool, {
      async onFailed(...given) {
        await book(...given);
        throw new Error('after writing');
      },
    });
    expect((await failing.receive(callback)).outcome).toBe('handler_failed');
    expect(await bookings(callback.data.id)).toEqual([]);
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
    expect(await bookings(callback.data.id)).toEqual(['FAILED']);
  });

  test('a handler that swallows an error of its transaction has not succeeded', async () => {
    const callback = transferSucceeded();
    const swallowing = receiverOn(pool, {
      async onSuccess(...given) {
        await book(...given);
        await given[1].tx.query('SELECT 1/0').catch(() => undefined);
      },
    });
    expect((await swallowing.receive(callback)).outcome).toBe('store_unavailable');
    expect(await bookings(callback.data.id)).toEqual([]);
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
  });

  test('a delivery whose commit fails is store_unavailable, and the next delivery is processed', async () => {
    await pool.query(`CREATE TABLE IF NOT EXISTS accounts (id text PRIMARY KEY);
      CREATE TABLE IF NOT EXISTS moves (account text REFERENCES accounts DEFERRABLE INITIALLY DEFERRED)`);
    const callback = transferSucceeded();
    const { id } = callback.data;
    const receiver = receiverOn(pool, {
      // Found to be wrong at the commit, and not before.
      onSuccess: (_callback, { tx }) => tx.query('INSERT INTO moves VALUES ($1)', [id]),
    });
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'store_unavailable',
      error: expect.objectContaining({ code: '23503' }) as unknown,
    });
    await pool.query('INSERT INTO accounts VALUES ($1)', [id]);
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect((await pool.query('SELECT FROM moves WHERE account = $1', [id])).rowCount).toBe(1);
  });

  test('the next delivery finds a callback settled whose commit succeeded but whose reply was lost', async () => {
    const { own, proxy } = await poolBehindProxy(server);
    const callback = transferSucceeded();
    proxy.loseReplyTo('COMMIT\0'); // The end of a message, not the COMMITTED of an isolation level.
    expect((await receiverOn(own).receive(callback)).outcome).toBe('store_unavailable');
    expect(proxy.lost()).toBe(1);
    expect((await receiverOn(own).receive(callback)).outcome).toBe('duplicate');
    expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  });

  test('a claim returns its client to the pool although the database has stopped replying', async () => {
    const { own, proxy } = await poolBehindProxy(server);
    const receiver = receiverOn(own, { storeTimeoutMs: 1_500, leaseMs: 4_600 });
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

  test('a handler that runs beyond the longest lease can write nothing later, and its connection is destroyed', async () => {
    const callback = transferSucceeded();
    const own = server.pool({ max: 1 });
    const [goOn, ended] = [later(), later<unknown>()];
    const receiver = receiverOn(own, {
      handlerTimeoutMs: 500,
      storeTimeoutMs: 1_000,
      leaseMs: 3_100,
      async onSuccess(...given) {
        await book(...given);
        await goOn.promise;
        await book(...given).then(ended.resolve, ended.resolve);
      },
    });
    expect((await receiver.receive(callback)).outcome).toBe('timed_out');
    await vi.waitFor(() => {
      expect(own.totalCount).toBe(0);
    });
    goOn.resolve();
    expect(await ended.promise).toBeInstanceOf(Error);
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
    expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  });

  test('a statement that a failed handler sends later writes nothing, not even when the next delivery has its client', async () => {
    const own = server.pool({ max: 1 });
    const [failed, goOn, stray, next] = [transferSucceeded(), later(), later<unknown>(), transferSucceeded()];
    const receiver = receiverOn(own, {
      async onSuccess(callback, context) {
        if (callback.data.id === next.data.id) {
          goOn.resolve();
          await stray.promise;
          await book(callback, context);
          return;
        }
        void goOn.promise.then(() => book(callback, context)).then(stray.resolve, stray.resolve);
        throw new Error('one branch of two');
      },
    });
    expect((await receiver.receive(failed)).outcome).toBe('handler_failed');
    // On the very client of the first: the pool has no other.
    expect((await receiver.receive(next)).outcome).toBe('processed');
    expect(await stray.promise).toMatchObject({ code: 'LEASE_LOST' });
    expect(await bookings(failed.data.id)).toEqual([]);
    expect(await bookings(next.data.id)).toEqual(['SUCCESS']);
    expect(own.totalCount).toBe(1);
  });

  test.each<['succeeded' | 'failed', string]>([
    ['succeeded', 'processed'],
    ['failed', 'handler_failed'],
  ])('the client of a handler that has %s takes no query, even while its transaction ends', async (how, outcome) => {
    const callback = transferSucceeded();
    const refused: unknown[] = [];
    const { promise, resolve } = later();
    const receiver = receiverOn(pool, {
      onSuccess(given, { tx }) {
        // A moment after the handler: the end of the transaction has been sent, and not answered.
        setImmediate(() => {
          void book(given, { tx }).catch((error: unknown) => refused.push(error));
          tx.query('SELECT 1', (error) => {
            refused.push(error);
            resolve();
          });
        });
        if (how === 'failed') throw new Error('no');
      },
    });
    expect((await receiver.receive(callback)).outcome).toBe(outcome);
    await promise;
    expect(refused).toMatchObject([{ code: 'LEASE_LOST' }, { code: 'LEASE_LOST' }]);
    expect(await bookings(callback.data.id)).toEqual([]);
  });

  test('the client of a handler has the other properties and methods of a client of pg', async () => {
    let seen: unknown[] = [];
    const receiver = receiverOn(pool, {
      async onSuccess(_callback, { tx }) {
        const { query } = tx as { query: (text: string) => Promise<{ rowCount: number | null }> };
        seen = [tx instanceof Client, tx.escapeIdentifier('a"b'), (await query('SELECT 1')).rowCount];
      },
    });
    expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
    expect(seen).toEqual([true, '"a""b"', 1]);
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

  test('the texts of a callback cannot change the SQL', async () => {
    const nasty = String.raw`'; DROP TABLE ledger; -- \' " $1 é 付款`;
    const callback = transferSucceeded({ id: `${nasty} ${randomUUID()}`, externalId: `${nasty}\0` });
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('duplicate');
    const { rows } = await pool.query('SELECT external_id FROM transfer_callbacks WHERE id = $1', [callback.data.id]);
    expect(rows).toEqual([{ external_id: `${nasty}\uFFFD` }]);
  });

  test('a callback is looked up by the index, however many there are', async () => {
    const store = postgresStore(pool, { table: 'many' });
    await store.migrate();
    await pool.query("INSERT INTO many SELECT n, '', '', '', now(), now() FROM generate_series(1, 10000) AS n");
    const [lookUp] = lookUpSql('many', '5').split(';');
    const { rows } = await pool.query<Record<string, string>>(`EXPLAIN ${lookUp}`);
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('many_pkey');
  });

  test('the table can have any name in any schema, and concurrent calls of migrate create it once', async () => {
    const schema = `of "${randomUUID().slice(0, 8)}"`;
    await pool.query(`CREATE SCHEMA "${schema.replaceAll('"', '""')}"`);
    const store = postgresStore(pool, { schema, table: "callbacks' table" });
    await Promise.all([store.migrate(), store.migrate(), store.migrate()]);
    expect(store.migrationSql).toContain(
      `CREATE TABLE IF NOT EXISTS "${schema.replaceAll('"', '""')}"."callbacks' table"`,
    );
    const receiver = transferCallbackReceiver({ store, onSuccess: book, onFailed: book, logger: false });
    const callback = transferSucceeded();
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect((await receiver.receive(callback)).outcome).toBe('duplicate');
    // Another table knows nothing of it.
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
  });

  test('no callback is acknowledged while the table is missing', async () => {
    const receiver = transferCallbackReceiver({
      store: postgresStore(pool, { table: 'not_there' }),
      onSuccess: book,
      onFailed: book,
      logger: false,
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error: expect.objectContaining({ code: '42P01' }) as unknown,
    });
  });

  test('prune deletes old records, in batches, and no others', async () => {
    const store = postgresStore(pool, { table: 'pruned' });
    await store.migrate();
    await pool.query(`INSERT INTO pruned SELECT 'old-' || n, '', '', '', now() - interval '2 days', now() FROM generate_series(1, 2500) AS n;
      INSERT INTO pruned SELECT 'new-' || n, '', '', '', now(), now() FROM generate_series(1, 10) AS n`);
    expect(await store.prune({ olderThanMs: 86_400_000 })).toBe(2_500);
    expect(await store.prune({ olderThanMs: 86_400_000 })).toBe(0);
    expect((await pool.query('SELECT FROM pruned')).rowCount).toBe(10);
    await expect(store.prune({ olderThanMs: 90_000 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(postgresStore(pool, { table: 'not_there' }).prune({ olderThanMs: 90_001 })).rejects.toMatchObject({
      code: '42P01',
    });
  });
});

describe('the options of the PostgreSQL store', () => {
  const pool = { connect: () => Promise.reject(new Error('not asked')) };

  test.each<[unknown, unknown, string]>([
    [undefined, {}, 'Expected `pool` to be a pool of pg, got undefined.'],
    [{}, {}, 'Expected `pool` to be a pool of pg, got an object.'],
    [pool, { table: '' }, 'Expected `table` to be a name of 1 to 52 bytes, got "".'],
    [pool, { table: 'x'.repeat(53) }, `Expected \`table\` to be a name of 1 to 52 bytes, got "${'x'.repeat(53)}".`],
    [pool, { schema: 5 }, 'Expected `schema` to be a name of 1 to 52 bytes, got 5.'],
    [
      pool,
      { statementTimeoutMs: 0 },
      'Expected `statementTimeoutMs` to be a whole number from 1 to 2147483647, got 0.',
    ],
    [pool, { idleTimeoutMs: 1.5 }, 'Expected `idleTimeoutMs` to be a whole number from 1 to 2147483647, got 1.5.'],
    [pool, { prefix: 'x' }, 'Unknown option `prefix`; known are table, schema, statementTimeoutMs, idleTimeoutMs.'],
    [pool, null, 'Expected `options` to be an object, got null.'],
  ])('postgresStore(%o, %o) is refused', (given, options, message) => {
    expect(() => postgresStore(given as Pool, options as object)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message }),
    );
  });
});
