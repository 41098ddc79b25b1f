import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { postgresStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { book, majors, receiverOn, startLedger, type Ledger, type PostgresServer } from '../support/postgres.js';
import { requestOf } from './support.js';
import { containing } from '../support/containing.js';

describe.each(majors)('on PostgreSQL %i', (major) => {
  let server: PostgresServer;
  let pool: Pool;
  let bookings: Ledger['bookings'];

  beforeAll(async () => {
    ({ server, pool, bookings } = await startLedger({ major, max: 20 }));
  });
  afterAll(() => server.stop());

  /** A pool of one client, which the app has used for `statements` and released. */
  async function usedPool(...statements: string[]): Promise<Pool> {
    const own = server.pool({ max: 1 });
    const client = await own.connect();
    for (const statement of statements) await client.query(statement).catch(() => undefined);
    client.release();
    return own;
  }

  /** A schema with a table of the store's name. */
  async function createTenant(): Promise<string> {
    const schema = `tenant_${randomUUID().slice(0, 8)}`;
    await pool.query(`CREATE SCHEMA ${schema}`);
    await postgresStore(pool, { schema }).migrate();
    return schema;
  }

  test.each<[string, string[]]>([
    ['an open transaction', ['BEGIN']],
    ['an open transaction of another isolation level', ['BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1']],
    ['a failed transaction', ['BEGIN', 'SELECT 1/0']],
  ])(
    'a client that is released with %s is named and destroyed, and nothing of it is committed',
    async (_title, begin) => {
      const callback = transferSucceeded();
      const { id } = callback.data;
      const [first = '', ...more] = begin;
      const own = await usedPool(first, `INSERT INTO ledger VALUES ('${id}', 'half')`, ...more);
      const receiver = receiverOn(own);
      expect(await receiver.receive(callback)).toMatchObject({
        outcome: 'store_unavailable',
        error: {
          code: 'STORE_REPLY_UNEXPECTED',
          message: containing(
            'A client of the pool was not usable: a transaction was open on it, which other code had begun and not ended ' +
              'before it released the client. That transaction is rolled back.',
          ),
        },
      });
      expect([own.totalCount, await bookings(id)]).toEqual([0, []]);
      expect((await receiver.receive(callback)).outcome).toBe('processed');
      expect(await bookings(id)).toEqual(['SUCCESS']);
    },
  );

  test('a duplicate on a client that is released with an open transaction commits nothing of it', async () => {
    const callback = transferSucceeded();
    expect((await receiverOn(pool).receive(callback)).outcome).toBe('processed');
    const own = await usedPool('BEGIN', `INSERT INTO ledger VALUES ('${callback.data.id}', 'half')`);
    expect((await receiverOn(own).receive(callback)).outcome).toBe('duplicate');
    expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  });

  test('a client that is released before its COMMIT has ended is used, and what it commits is kept', async () => {
    const own = server.pool({ max: 1 });
    const client = await own.connect();
    const callback = transferSucceeded();
    const { id } = callback.data;
    await client.query('BEGIN');
    await client.query('INSERT INTO ledger VALUES ($1, $2)', [id, 'whole']);
    const committed = client.query('COMMIT');
    client.release();
    expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
    await committed;
    expect((await bookings(id)).toSorted()).toEqual(['SUCCESS', 'whole']);
  });

  test('a search_path that a handler leaves on its client makes no callback run twice, and the client is destroyed', async () => {
    const tenant = await createTenant();
    const own = server.pool({ max: 1 });
    let setting = `SET search_path = ${tenant}, public`;
    const receiver = receiverOn(own, {
      async onSuccess(...given) {
        await book(...given);
        await given[1].tx.query(setting);
      },
    });
    const callback = transferSucceeded();
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    setting = 'SELECT 1';
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'store_unavailable',
      error: {
        code: 'STORE_REPLY_UNEXPECTED',
        message: containing(
          `A client of the pool was not usable: its search_path finds the table in schema ${tenant}, and that of the first ` +
            'claim was in public. Set the `schema` option, and change settings with SET LOCAL only.',
        ),
      },
    });
    expect(own.totalCount).toBe(0);
    expect((await receiver.receive(callback)).outcome).toBe('duplicate');
    expect(await bookings(callback.data.id)).toEqual(['SUCCESS']);
  });

  test('a record in the table of another schema acknowledges no callback', async () => {
    const tenant = await createTenant();
    const own = server.pool({ max: 1 });
    const receiver = receiverOn(own);
    expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
    const callback = transferSucceeded();
    expect((await receiverOn(pool, {}, { schema: tenant }).receive(callback)).outcome).toBe('processed');
    await own.query(`SET search_path = ${tenant}`);
    expect((await receiver.receive(callback)).outcome).toBe('store_unavailable');
    expect((await receiver.receive(callback)).outcome).toBe('processed');
  });

  test.each<[string, (tenant: string, other: string) => string, object | undefined]>([
    ['the schema option is set', (tenant) => tenant, { schema: 'public' }],
    ['it finds the same table', (_tenant, other) => other, undefined],
  ])('a search_path that an app leaves on a client does no harm if %s', async (_title, toSchema, options) => {
    const other = `other_${randomUUID().slice(0, 8)}`;
    await pool.query(`CREATE SCHEMA ${other}`);
    const path = toSchema(await createTenant(), other);
    const own = server.pool({ max: 1 });
    const receiver = receiverOn(own, {}, options);
    expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
    await own.query(`SET search_path = ${path}, public`);
    const callback = transferSucceeded();
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect((await receiver.receive(callback)).outcome).toBe('duplicate');
  });

  test('a store whose table is dropped and created again goes on without a restart of the process', async () => {
    const store = postgresStore(pool, { table: 'created_again' });
    for (const token of ['a', 'b']) {
      await pool.query('DROP TABLE IF EXISTS created_again');
      await store.migrate();
      const claim = await store.claim('the id', requestOf(token));
      expect(claim.state).toBe('claimed');
      if (claim.state === 'claimed') await claim.lease.settle();
    }
  });
});

describe('a pool whose driver returns values in another form', () => {
  let server: PostgresServer;
  let pool: Pool;

  beforeAll(async () => {
    ({ server, pool } = await startLedger({ max: 20 }));
  });
  afterAll(() => server.stop());

  const boolean = 16;
  const parsers: [string, (type: number) => (value: string) => unknown][] = [
    ['every value as text', () => (value) => value],
    ['booleans as 0 and 1', (type) => (value) => (type === boolean ? Number(value === 't') : value)],
    ['every value as a number where it can', () => (value) => (Number.isNaN(Number(value)) ? value : Number(value))],
  ];

  test.each(parsers)(
    'a pool whose driver returns %s acknowledges duplicates, replaces expired records and creates the table',
    async (_title, getTypeParser) => {
      const own: Pool = server.pool({ max: 2, types: { getTypeParser } });
      const table = `t_${randomUUID().slice(0, 8)}`;
      const store = postgresStore(own, { table });
      await store.migrate();
      await store.migrate();
      const count = async (where: string): Promise<number | null> =>
        (await pool.query(`SELECT FROM ${table} WHERE ${where}`)).rowCount;
      expect(await count('true')).toBe(0);
      const receiver = receiverOn(own, {}, { table });
      const callback = transferSucceeded();
      for (const expected of ['processed', 'duplicate'])
        expect((await receiver.receive(callback)).outcome).toBe(expected);
      await pool.query(`UPDATE ${table} SET expires_at = now()`);
      for (const expected of ['processed', 'duplicate'])
        expect((await receiver.receive(callback)).outcome).toBe(expected);
      expect(await store.read(callback.data.id)).toEqual(await postgresStore(pool, { table }).read(callback.data.id));
      const record = await store.read(callback.data.id);
      expect(record.state === 'settled' && (await store.forget(callback.data.id, record.fingerprint))).toBe(true);
      await pool.query(`INSERT INTO ${table} VALUES ('old', '', '', '', now() - interval '2 days', now())`);
      expect(await store.prune({ olderThanMs: 90_001 })).toBe(1);
    },
  );

  test('the record of a slow handler is settled by a driver that returns every value as text', async () => {
    const own: Pool = server.pool({ max: 1, types: { getTypeParser: () => (value: string) => value } });
    const receiver = receiverOn(own, {
      async onSuccess(given, context: { tx: PoolClient }) {
        await book(given, context);
        await new Promise((resolve) => setTimeout(resolve, 1_100));
        await context.tx.query('SET LOCAL search_path = pg_catalog');
      },
    });
    const callback = transferSucceeded();
    for (const expected of ['processed', 'duplicate'])
      expect((await receiver.receive(callback)).outcome).toBe(expected);
  });
});
