import { Client, type Pool } from 'pg';
import { postgresStore } from 'transfer-callbacks';
import { inspectionContract, storeContract, transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { later } from '../core/support.js';
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

  describe('the PostgreSQL store keeps the contracts', () => {
    test.concurrent.each(storeContract)('$title', ({ check }) => check(postgresStore(pool)));
    test.concurrent.each(inspectionContract)('$title', ({ check }) => check(postgresStore(pool)));
  });

  describe('two PostgreSQL stores, each with its own pool, keep the contracts', () => {
    let other: Pool;
    beforeAll(() => {
      other = server.pool({ max: 50 });
    });

    test.concurrent.each(storeContract)('$title', ({ check }) => check(postgresStore(pool), postgresStore(other)));
    test.concurrent.each(inspectionContract)('$title', ({ check }) => check(postgresStore(pool), postgresStore(other)));
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
        // A moment after the handler: the end of the transaction has been sent, and has no reply yet.
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
});
