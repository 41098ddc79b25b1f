import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { postgresStore, transferCallbackReceiver } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lookUpSql } from '../../src/stores/postgres-sql.js';
import { book, majors, receiverOn, startLedger, type PostgresServer } from '../support/postgres.js';
import { requestOf } from './support.js';
import { containing } from '../support/containing.js';

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;

  beforeAll(async () => {
    ({ server, pool } = await startLedger({ major, max: 100 }));
  });
  afterAll(() => server.stop());

  test('the texts of a callback cannot change the SQL', async () => {
    const nasty = String.raw`'; DROP TABLE ledger; -- \' " $1 é 付款`;
    const callback = transferSucceeded({ id: `${nasty} ${randomUUID()}`, externalId: `${nasty}\0` });
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('duplicate');
    const { rows } = await pool.query('SELECT external_id FROM transfer_callbacks WHERE id = $1', [callback.data.id]);
    expect(rows).toEqual([{ external_id: `${nasty}\uFFFD` }]);
  });

  test.each([
    ['by default', {}, ['30s', '25s']],
    ['as set', { statementTimeoutMs: 1_000, idleTimeoutMs: 2_000 }, ['1s', '2s']],
    ['of the connection', { statementTimeoutMs: null, idleTimeoutMs: null }, ['0', '0']],
  ])('a handler has the time limits %s', async (_what, options, limits) => {
    const store = postgresStore(pool, options);
    const claim = await store.claim(crypto.randomUUID(), requestOf('the-token'));
    if (claim.state !== 'claimed') throw new Error(`A new callback is ${claim.state}.`);
    const { tx } = claim.lease;
    const read = async (name: string) =>
      (await tx.query<{ now: string }>('SELECT current_setting($1) AS now', [name])).rows[0]?.now;
    expect([await read('statement_timeout'), await read('idle_in_transaction_session_timeout')]).toEqual(limits);
    await claim.lease.release();
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

describe('on the newest PostgreSQL', () => {
  let server: PostgresServer;
  let pool: Pool;

  beforeAll(async () => {
    ({ server, pool } = await startLedger({ max: 20 }));
  });
  afterAll(() => server.stop());

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
});

describe('the options of the PostgreSQL store', () => {
  const pool = { connect: () => Promise.reject(new Error('not asked')) };
  const expectedPool = 'Expected `pool` to be a pool of pg';

  test.each<[unknown, unknown, string]>([
    [undefined, {}, `${expectedPool}, got undefined.`],
    [{}, {}, `${expectedPool}, got an object.`],
    [() => pool, {}, `${expectedPool}, got a function.`],
    // Its password must not reach the log of a start that fails.
    ['postgres://payouts:hunter2@127.0.0.1/payouts', {}, `${expectedPool}, got a string of 44 characters.`],
    [pool, { table: '' }, 'Expected `table` to be a name of 1 to 52 bytes, got "".'],
    [
      pool,
      { table: 'x'.repeat(53) },
      `Expected \`table\` to be a name of 1 to 52 bytes, got a string of 53 characters.`,
    ],
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
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
    );
  });
});
