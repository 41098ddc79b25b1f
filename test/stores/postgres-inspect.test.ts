import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import {
  postgresStore,
  type CallbackStore,
  type InspectableStore,
  type Lease,
  type StoreRecord,
} from 'transfer-callbacks';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { majors, poolBehindProxy, startLedger, type PostgresServer } from '../support/postgres.js';

async function hold(store: CallbackStore<unknown>, id: string): Promise<Lease<unknown>> {
  const request = { token: 'a', fingerprint: 'facts', leaseMs: 30_000, retentionMs: 100_000 };
  const claim = await store.claim(id, request);
  return claim.state === 'claimed' ? claim.lease : expect.fail(claim.state);
}

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;

  beforeAll(async () => {
    ({ server, pool } = await startLedger({ major, max: 20 }));
  });
  afterAll(() => server.stop());

  /** A pool of a role that may use the store's table, and nothing else. */
  async function restrictedPool(): Promise<Pool> {
    const role = `support_${randomUUID().slice(0, 8)}`;
    await pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'; GRANT SELECT ON transfer_callbacks TO ${role}`);
    const url = new URL(server.url);
    url.username = role;
    url.password = 'x';
    return server.pool({ connectionString: url.href });
  }

  test('a claim is read with the name, the address and the backend of its connection, and since when it runs', async () => {
    const own = server.pool({ max: 1, application_name: 'payouts' });
    const id = randomUUID();
    const before = Date.now();
    const lease = await hold(postgresStore(own), id);
    const { rows } = await pool.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'payouts'",
    );
    const record = await postgresStore(pool).read(id);
    expect(record).toEqual({
      state: 'claimed',
      by: `payouts, 127.0.0.1, backend ${rows[0]?.pid}`,
      since: expect.any(Date) as Date,
    });
    const since = record.state === 'claimed' ? (record.since?.getTime() ?? 0) : 0;
    expect([since >= before - 1_000, since <= Date.now() + 1_000]).toEqual([true, true]);
    await lease.release();
    expect(await postgresStore(pool).read(id)).toMatchObject({ state: 'free' });
  });

  test('a role that may not see other sessions reads who holds a claim, without address and time', async () => {
    const id = randomUUID();
    const lease = await hold(postgresStore(server.pool({ max: 1, application_name: 'payouts' })), id);
    const record = await postgresStore(await restrictedPool()).read(id);
    expect(record).toEqual({ state: 'claimed', by: expect.stringMatching(/^payouts, backend \d+$/) as string });
    await lease.release();
  });

  test('a claim of a connection without a name is read with its address and backend', async () => {
    const id = randomUUID();
    const lease = await hold(postgresStore(server.pool({ max: 1 })), id);
    expect(await postgresStore(pool).read(id)).toMatchObject({
      by: expect.stringMatching(/^127\.0\.0\.1, backend \d+$/) as string,
    });
    await lease.release();
  });

  test('a settled callback is read with the times of its row', async () => {
    const id = randomUUID();
    await (await hold(postgresStore(pool), id)).settle();
    const { rows } = await pool.query<Record<'settled_at' | 'expires_at', Date>>(
      'SELECT settled_at, expires_at FROM transfer_callbacks WHERE id = $1',
      [id],
    );
    expect(await postgresStore(pool).read(id)).toEqual({
      state: 'settled',
      fingerprint: 'facts',
      settledAt: rows[0]?.settled_at,
      expiresAt: rows[0]?.expires_at,
    });
  });

  test('a record that never expires is read without the time of its expiry', async () => {
    const id = randomUUID();
    await pool.query("INSERT INTO transfer_callbacks VALUES ($1, '', '', 'facts', now(), 'infinity')", [id]);
    expect(await postgresStore(pool).read(id)).toEqual({
      state: 'settled',
      fingerprint: 'facts',
      settledAt: expect.any(Date) as Date,
    });
  });

  test('a driver that is set to return every value as text reads the same record', async () => {
    const text = server.pool({ types: { getTypeParser: () => (value: unknown) => value } });
    const [claimed, settled] = [randomUUID(), randomUUID()];
    const lease = await hold(postgresStore(pool), claimed);
    await (await hold(postgresStore(pool), settled)).settle();
    for (const id of [claimed, settled, randomUUID()]) {
      expect(await postgresStore(text).read(id)).toEqual(await postgresStore(pool).read(id));
    }
    await lease.release();
  });

  test('a callback that is being settled is read as claimed or settled, and never as free', async () => {
    const store = postgresStore(pool);
    const states = new Set<StoreRecord['state']>();
    for (let round = 0; round < 100; round += 1) {
      const id = randomUUID();
      const lease = await hold(store, id);
      const readUntilSettled = async (): Promise<void> => {
        for (let state = ''; state !== 'settled';) {
          ({ state } = await store.read(id));
          states.add(state as StoreRecord['state']);
        }
      };
      await Promise.all([readUntilSettled(), readUntilSettled(), readUntilSettled(), lease.settle()]);
    }
    expect(states).not.toContain('free');
  });

  test('an expired record is read as free, or as claimed by who replaces it, and is not forgotten', async () => {
    const id = randomUUID();
    await pool.query("INSERT INTO transfer_callbacks VALUES ($1, '', '', 'facts', now() - interval '1 day', now())", [
      id,
    ]);
    const store = postgresStore(pool);
    expect(await store.read(id)).toMatchObject({ state: 'free' });
    expect(await store.forget(id, 'facts')).toBe(false);
    const lease = await hold(store, id);
    expect((await store.read(id)).state).toBe('claimed');
    // Waits for nothing: the claim holds the lock of the old row until its handler has ended.
    expect(await store.forget(id, 'facts')).toBe(false);
    expect(await lease.settle()).toEqual({ overlapped: false });
    expect(await store.forget(id, 'facts')).toBe(true);
  });

  test('a record whose row another session has locked is not forgotten, and not waited for', async () => {
    const id = randomUUID();
    const store = postgresStore(pool);
    await (await hold(store, id)).settle();
    const session = await pool.connect();
    await session.query('BEGIN');
    await session.query('SELECT FROM transfer_callbacks WHERE id = $1 FOR UPDATE', [id]);
    expect(await store.forget(id, 'facts')).toBe(false);
    await session.query('ROLLBACK');
    session.release();
    expect(await store.forget(id, 'facts')).toBe(true);
  });

  test('connections that are read-only and serializable by default read and forget', async () => {
    const options = '-c default_transaction_read_only=on -c default_transaction_isolation=serializable';
    const store = postgresStore(server.pool({ options }));
    const id = randomUUID();
    await (await hold(store, id)).settle();
    const forgotten = await Promise.all(Array.from({ length: 10 }, () => store.forget(id, 'facts')));
    expect(forgotten.filter(Boolean)).toHaveLength(1);
    expect(await store.read(id)).toMatchObject({ state: 'free' });
  });

  test('two tables of one database keep their claims and their records apart', async () => {
    const other = postgresStore(pool, { schema: 'public', table: `other "${randomUUID().slice(0, 8)}"` });
    await other.migrate();
    const id = `'; DROP TABLE ledger; -- ${randomUUID()}`;
    const lease = await hold(other, id);
    expect([(await other.read(id)).state, (await postgresStore(pool).read(id)).state]).toEqual(['claimed', 'free']);
    await lease.settle();
    expect(await postgresStore(pool).forget(id, 'facts')).toBe(false);
    expect((await other.read(id)).state).toBe('settled');
  });

  test.each<[string, (store: InspectableStore<unknown>) => Promise<unknown>]>([
    ['read', (store) => store.read(randomUUID())],
    ['forget', (store) => store.forget(randomUUID(), 'facts')],
  ])('a database that takes everything and replies nothing costs `%s` no client of the pool', async (_name, call) => {
    const { own, proxy } = await poolBehindProxy(server);
    const store = postgresStore(own, { statementTimeoutMs: 300 });
    expect(await store.read(randomUUID())).toMatchObject({ state: 'free' });
    proxy.fallSilent();
    await expect(call(store)).rejects.toThrow();
    await vi.waitFor(() => {
      expect(own.totalCount).toBe(0);
    });
  });

  test('`read` and `forget` reject without the table', async () => {
    const store = postgresStore(pool, { table: 'not_there' });
    await expect(store.read(randomUUID())).rejects.toMatchObject({ code: '42P01' });
    await expect(store.forget(randomUUID(), '')).rejects.toMatchObject({ code: '42P01' });
  });
});
