import { beforeAll, describe, expect, test, vi } from 'vitest';
import { postgresStore, type InspectableStore, type RecordsKept } from 'transfer-callbacks';
import { startPostgres, type PostgresServer } from '../support/postgres.js';
import { claimFree } from './support.js';

let server: PostgresServer;
beforeAll(async () => {
  const started = (server = await startPostgres());
  return () => started.stop();
});

/** Makes a store with its own table. */
async function makeStore(options: Parameters<PostgresServer['pool']>[0] = {}) {
  const pool = server.pool(options);
  const table = `kept_${crypto.randomUUID().replaceAll('-', '')}`;
  const store = postgresStore(pool, { table });
  await store.migrate();
  return { pool, table, store };
}

async function readKept(store: InspectableStore<never>): Promise<RecordsKept | undefined> {
  const record = await store.read('never-claimed');
  return record.state === 'free' ? record.kept : expect.fail(record.state);
}

/** Claims with this retention, and waits until the store tells it. */
async function keepFor(store: InspectableStore<never>, retentionMs: number): Promise<RecordsKept> {
  await (await claimFree(store, { retentionMs })).release();
  return vi.waitUntil(async () => {
    const kept = await readKept(store);
    return kept?.retentionMs === retentionMs ? kept : false;
  });
}

describe('since when records are kept', () => {
  test('is not known before a receiver has claimed in the table, and stays as it is with the same retention', async () => {
    const { store, pool, table } = await makeStore();
    const other = await makeStore();
    expect(await readKept(store as never)).toBeUndefined();
    const first = await keepFor(store as never, 100_000);
    expect(Math.abs(first.since.getTime() - Date.now())).toBeLessThan(60_000);
    expect(await readKept(other.store as never)).toBeUndefined();
    await vi.waitUntil(() => Date.now() > first.since.getTime());
    const sameTable = postgresStore(pool, { table });
    expect(await keepFor(sameTable as never, 100_000)).toEqual(first);
    const shorter = await keepFor(postgresStore(pool, { table }) as never, 95_000);
    expect(shorter.since.getTime()).toBeGreaterThan(first.since.getTime());
  });

  test('the store tells since when it keeps records although the driver parses nothing', async () => {
    const { store } = await makeStore({ types: { getTypeParser: () => (value: unknown) => value } });
    expect((await keepFor(store as never, 100_000)).since.getTime()).toBeLessThan(Date.now() + 60_000);
  });

  test('outlasts `prune`, and begins anew if it has deleted records early', async () => {
    const { store, pool, table } = await makeStore();
    const first = await keepFor(store as never, 100_000);
    await pool.query(`INSERT INTO ${table} SELECT n::text, '', '', '["SUCCESS",1,"XAF","x"]', 'epoch', 'infinity'
      FROM generate_series(1, 1500) AS n`);
    await vi.waitUntil(() => Date.now() > first.since.getTime());
    expect(await store.prune({ olderThanMs: 100_000 })).toBe(1_500);
    expect(await readKept(store as never)).toEqual(first);
    await store.prune({ olderThanMs: 99_999 });
    const kept = await readKept(store as never);
    expect(kept?.retentionMs).toBe(100_000);
    expect(kept?.since.getTime()).toBeGreaterThan(first.since.getTime());
  });

  test('is written on a pool of one client too, and does not wait for it while a handler runs', async () => {
    const { store, pool } = await makeStore({ max: 1 });
    const lease = await claimFree(store as never, { retentionMs: 100_000 });
    expect(await lease.renew()).toBe(true);
    expect(pool.waitingCount).toBe(0);
    await lease.release();
    await vi.waitUntil(() => readKept(store as never));
  });
});

test('a replica rejects where it has no record, and shows those that it has', async () => {
  const { store, pool, table } = await makeStore();
  const lease = await claimFree(store as never, {}, 'settled');
  await lease.settle();
  // What a standby replies with: it takes another server minutes to become one.
  await pool.query('CREATE SCHEMA standby');
  await pool.query(`CREATE FUNCTION standby.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'`);
  const standby = postgresStore(server.pool({ options: '-c search_path=standby,pg_catalog,public' }), { table });
  await expect(standby.read('missing')).rejects.toMatchObject({
    code: 'STORE_NOT_PRIMARY',
    message: expect.stringContaining('is a replica') as string,
  });
  expect((await standby.read('settled')).state).toBe('settled');
});
