import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  contractTransaction,
  majors,
  poolOfRole,
  startLedger,
  type PostgresServer,
} from '../support/servers/postgres.js';
import { claimFree, request } from './support.js';

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;
  let other: Pool;
  let transaction: StoreTransaction<Pick<PoolClient, 'query'>>;

  beforeAll(async () => {
    ({ server, pool } = await startLedger({ major, max: 100 }));
    other = server.pool({ max: 50 });
    transaction = await contractTransaction(pool);
  });
  afterAll(() => server.stop());

  test.concurrent.each(storeContract)(
    'two stores, each with its own pool of pg, keep the contract: $title',
    ({ check }) => check(pgStore(pool), { other: pgStore(other), transaction }),
  );

  test('a claim is read with the backend of its handler, and since when', async () => {
    const own = server.pool({ max: 1 });
    const id = randomUUID();
    const before = Date.now();
    const claim = await claimFree(pgStore(own), {}, id);
    const { rows } = await claim.tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const expected = { state: 'claimed', by: `backend ${rows[0]?.pid}` };
    const record = await pgStore(pool).read(id);
    expect(record).toEqual({ ...expected, since: expect.any(Date) as Date });
    if (record.state !== 'claimed') throw new Error(record.state);
    expect(Math.abs((record.since?.getTime() ?? 0) - before)).toBeLessThan(30_000);
    // A role without a right to see other sessions.
    expect(await pgStore(await poolOfRole(server, 'SELECT')).read(id)).toEqual(expected);
    await claim.release();
    expect(await pgStore(pool).read(id)).toEqual({ state: 'free' });
  });

  test('a callback that is being handled is read as claimed or handled, and never as free', async () => {
    const store = pgStore(pool);
    const states = new Set<string>();
    for (let round = 0; round < 50; round += 1) {
      const id = randomUUID();
      const claim = await claimFree(store, {}, id);
      const readUntilSettled = async (): Promise<void> => {
        for (let state = ''; state !== 'handled'; states.add(state)) ({ state } = await store.read(id));
      };
      await Promise.all([readUntilSettled(), readUntilSettled(), claim.settle()]);
    }
    expect(states).not.toContain('free');
  });

  test('a row that another session has locked is read, and forgotten once when it is free', async () => {
    const id = randomUUID();
    const store = pgStore(pool);
    await (await claimFree(store, {}, id)).settle();
    const session = await pool.connect();
    await session.query('BEGIN');
    await session.query('SELECT FROM transfer_callbacks WHERE id = $1 FOR UPDATE', [id]);
    expect((await store.read(id)).state).toBe('handled');
    const forgotten = Promise.all([store.forget(id, request.fingerprint), store.forget(id, request.fingerprint)]);
    await session.query('ROLLBACK');
    session.release();
    expect((await forgotten).toSorted()).toEqual([false, true]);
    expect(await store.read(id)).toEqual({ state: 'free' });
  });

  test('a record that has expired is not forgotten', async () => {
    const id = randomUUID();
    const store = pgStore(pool);
    await (await claimFree(store, {}, id)).settle();
    await pool.query('UPDATE transfer_callbacks SET expires_at = 1 WHERE id = $1', [id]);
    expect(await store.forget(id, request.fingerprint)).toBe(false);
  });

  test('prune deletes old records and claims that count no longer, in batches, and no others', async () => {
    const store = pgStore(pool, { table: 'pruned' });
    await store.migrate();
    const insert = (name: string, rows: number, handledAt: string, expiresAt: string): string =>
      `INSERT INTO pruned SELECT '${name}-' || n, '', '', '', '', 0, ${handledAt}, ${expiresAt}
          FROM generate_series(1, ${rows}) AS n`;
    const [now, twoDays] = [Date.now(), 172_800_000];
    await pool.query(
      [
        insert('ended', 2_500, String(now - twoDays), String(now - 10_000)),
        insert('counts', 10, String(now - twoDays), String(now + 10_000)),
        insert('left behind', 10, 'NULL', String(now - twoDays)),
        insert('new', 10, String(now), String(now + twoDays)),
        insert('running', 10, 'NULL', String(now + 10_000)),
        insert('just left behind', 10, 'NULL', String(now - 10_000)),
      ].join(';'),
    );
    expect(await store.prune({ olderThanMs: 86_400_000 })).toBe(2_510);
    expect(await store.prune({ olderThanMs: 86_400_000 })).toBe(0);
    expect((await pool.query('SELECT FROM pruned')).rowCount).toBe(40);
    await expect(store.prune({ olderThanMs: 90_000 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a callback is found by the index, however many there are', async () => {
    const own = server.pool({ max: 2, application_name: 'scans' });
    const store = pgStore(own, { table: 'many' });
    await store.migrate();
    await own.query(`INSERT INTO many SELECT n, '', '', '', NULL, 0, NULL, 0 FROM generate_series(1, 10000) AS n`);
    /** Counts the scans of the table and of its index. PostgreSQL reports those of a connection when it ends. */
    const countScans = async (): Promise<[number, number]> => {
      for (const client of await Promise.all([own.connect(), own.connect()])) client.release(true);
      await vi.waitUntil(async () => {
        const { rowCount } = await pool.query("SELECT FROM pg_stat_activity WHERE application_name = 'scans'");
        return rowCount === 0;
      });
      const { rows } = await pool.query<Record<'seq' | 'idx', number>>(
        "SELECT seq_scan::int AS seq, idx_scan::int AS idx FROM pg_stat_user_tables WHERE relname = 'many'",
      );
      return [Number(rows[0]?.seq), Number(rows[0]?.idx)];
    };
    const [scans, lookUps] = await countScans();
    // A row that has ended is in the way of the claim.
    const claim = await claimFree(store, {}, '5');
    await claim.renew();
    await claim.settle();
    await store.read('5');
    await store.forget('5', request.fingerprint);
    const [scansAfter, lookUpsAfter] = await countScans();
    expect(scansAfter).toBe(scans);
    expect(lookUpsAfter).toBeGreaterThan(lookUps + 4);
  });
});
