import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { majors, poolBehindProxy, poolOfRole, startLedger, type PostgresServer } from '../support/postgres.js';
import { claimFree, request, requestOf } from './support.js';

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;

  beforeAll(async () => {
    ({ server, pool } = await startLedger({ major, max: 30 }));
  });
  afterAll(() => server.stop());

  test('a claim is read with the backend of its handler, and since when', async () => {
    const own = server.pool({ max: 1 });
    const id = randomUUID();
    const before = Date.now();
    const reply = await pgStore(own).claim(id, requestOf('a'));
    if (reply.state !== 'claimed') throw new Error(reply.state);
    const { rows } = await reply.claim.tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const expected = { state: 'claimed', by: `backend ${rows[0]?.pid}` };
    const record = await pgStore(pool).read(id);
    expect(record).toEqual({ ...expected, since: expect.any(Date) as Date });
    if (record.state !== 'claimed') throw new Error(record.state);
    expect(Math.abs((record.since?.getTime() ?? 0) - before)).toBeLessThan(30_000);
    // A role without a right to see other sessions.
    expect(await pgStore(await poolOfRole(server, 'SELECT')).read(id)).toEqual(expected);
    await reply.claim.release();
    expect(await pgStore(pool).read(id)).toEqual({ state: 'free' });
  });

  test('a settled callback is read with the times of its row, and an expired one as free', async () => {
    const id = randomUUID();
    const store = pgStore(pool);
    await (await claimFree(store, {}, id)).settle();
    const record = await store.read(id);
    expect(record).toEqual({
      state: 'settled',
      fingerprint: request.fingerprint,
      delivery: request.token,
      settledAt: expect.any(Date) as Date,
      expiresAt: expect.any(Date) as Date,
    });
    if (record.state !== 'settled') throw new Error(record.state);
    expect(Number(record.expiresAt) - Number(record.settledAt)).toBe(request.retentionMs + 1_000);
    await pool.query('UPDATE transfer_callbacks SET expires_at = 1 WHERE id = $1', [id]);
    expect(await store.read(id)).toEqual({ state: 'free' });
    expect(await store.forget(id, request.fingerprint)).toBe(false);
  });

  test('a callback that is being settled is read as claimed or settled, and never as free', async () => {
    const store = pgStore(pool);
    const states = new Set<string>();
    for (let round = 0; round < 50; round += 1) {
      const id = randomUUID();
      const claim = await claimFree(store, {}, id);
      const readUntilSettled = async (): Promise<void> => {
        for (let state = ''; state !== 'settled'; states.add(state)) ({ state } = await store.read(id));
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
    expect((await store.read(id)).state).toBe('settled');
    const forgotten = Promise.all([store.forget(id, request.fingerprint), store.forget(id, request.fingerprint)]);
    await session.query('ROLLBACK');
    session.release();
    expect((await forgotten).toSorted()).toEqual([false, true]);
    expect(await store.read(id)).toEqual({ state: 'free' });
  });

  test('a database that takes everything and replies nothing costs `read` no client for ever', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { own, proxy } = await poolBehindProxy(server);
      const store = pgStore(own);
      expect(await store.read(randomUUID())).toMatchObject({ state: 'free' });
      proxy.fallSilent();
      const reading = store.read(randomUUID()).catch((error: unknown) => error);
      while (own.totalCount > 0) {
        await vi.advanceTimersByTimeAsync(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(await reading).toBeInstanceOf(Error);
    } finally {
      vi.useRealTimers();
    }
  });
});
