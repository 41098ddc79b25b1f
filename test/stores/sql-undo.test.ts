// What becomes of a transaction whose ROLLBACK the server has not replied to: libraries give its connection back.
import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { sqlStore, type SqlStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { receiverOf } from '../core/support.js';
import { pgTransaction } from '../support/helpers/transactions.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';
import { poolBehindProxy } from '../support/servers/postgres.js';
import { claimFree, request } from './support.js';
import { expectNothingKept, impatience, nextUsers, waiting, type ImpatientLibrary } from './undo-support.js';

const server = startPostgresForFile((started) =>
  started.pool().query('CREATE TABLE contract_writes (key text); CREATE TABLE locked (name text PRIMARY KEY)'),
);

type Query = (client: PoolClient, sql: string) => Promise<unknown>;

/**
 * The store of a library, in a table of its own. As others do, it gives a connection back whatever became of its
 * ROLLBACK.
 */
async function makeLibrary(
  pool: Pool,
  query: Query = (client, sql) => client.query(sql),
): Promise<ImpatientLibrary<PoolClient>> {
  const use = async <T>(work: (client: PoolClient) => Promise<T>): Promise<T> => {
    const client = await pool.connect();
    return work(client).finally(() => {
      client.release();
    });
  };
  const run = (work: (client: PoolClient) => Promise<unknown>): Promise<void> =>
    use(async (client) => {
      try {
        await query(client, 'BEGIN');
        await work(client);
        await query(client, 'COMMIT');
      } catch (error) {
        await query(client, 'ROLLBACK');
        throw error;
      }
    });
  const table = `callbacks_${randomUUID().slice(0, 8)}`;
  const store: SqlStore<PoolClient> = sqlStore<PoolClient>(
    {
      dialect: 'postgres',
      query: (sql, tx) => (tx === undefined ? use((client) => query(client, sql)) : query(tx, sql)),
      transaction: run,
    },
    { table },
  );
  await store.migrate();
  const lock = (tx: PoolClient, name: string) => tx.query('INSERT INTO locked VALUES ($1)', [name]);
  return {
    store,
    table,
    transaction: { ...pgTransaction(pool), lock },
    runOwn: () => run((tx) => tx.query('SELECT 1')),
  };
}

const plays = [1, 2].flatMap((max) => waiting.flatMap((waits) => nextUsers.map((next) => [waits, max, next] as const)));
test.each(plays)(
  'nothing is kept of a %s that fails while the server runs its statement, with a pool of %d and its connection next used by %s',
  async (waits, max, next) => {
    const pool = server.pool({ connectionString: `${server.url}${impatience}`, max });
    await expectNothingKept(server.url, await makeLibrary(pool), waits, next);
  },
);

test('a connection that the server has ended in a handler goes back, and the next delivery has another one', async () => {
  const pool = server.pool({ max: 1 });
  pool.on('connect', (client) => client.on('error', () => undefined));
  const { store, transaction } = await makeLibrary(pool);
  const claim = await claimFree(store);
  await expect(claim.tx.query('SELECT pg_terminate_backend(pg_backend_pid())')).rejects.toThrow();
  await claim.release();
  const id = randomUUID();
  const next = await claimFree(store, {}, id);
  await transaction.write(next.tx, id);
  await next.settle();
  expect(await transaction.count(id)).toBe(1);
});

test('nothing is sent on a connection once the library has ended its transaction, as postgres.js does if it breaks', async () => {
  const own = server.pool({ max: 1 });
  own.on('connect', (client) => client.on('error', () => undefined));
  let isOver = false;
  const late: string[] = [];
  const ended: Promise<unknown>[] = [];
  const store = sqlStore<PoolClient>(
    {
      dialect: 'postgres',
      query(sql, tx) {
        if (isOver) late.push(sql);
        return (tx ?? own).query(sql);
      },
      async transaction(work) {
        const client = await own.connect();
        const broken = new Promise<never>((_, reject) => client.once('error', reject));
        await client.query('BEGIN');
        ended.push(work(client));
        await Promise.race([ended[0], broken]).finally(() => {
          isOver = true;
          client.release(true);
        });
      },
    },
    { table: 'raced' },
  );
  await store.migrate();
  const claim = await claimFree(store);
  await expect(claim.tx.query('SELECT pg_terminate_backend(pg_backend_pid())')).rejects.toThrow();
  await claim.release();
  await expect(ended[0]).rejects.toThrow();
  expect(late).toEqual([]);
});

test('a library that calls its function again after a failed COMMIT is refused, and its connection goes back', async () => {
  await server.pool().query('CREATE TABLE unique_late (name text UNIQUE DEFERRABLE INITIALLY DEFERRED)');
  const pool = server.pool({ max: 1 });
  const refusals: unknown[] = [];
  const store: SqlStore<PoolClient> = sqlStore<PoolClient>(
    {
      dialect: 'postgres',
      query: (sql, tx) => (tx ?? pool).query(sql),
      async transaction(work) {
        for (;;) {
          const client = await pool.connect();
          try {
            await client.query('BEGIN');
            await work(client);
            await client.query('COMMIT');
            return;
          } catch (error) {
            await client.query('ROLLBACK');
            refusals.push(error);
            if ((error as { code?: unknown }).code !== '23505') throw error;
          } finally {
            client.release();
          }
        }
      },
    },
    // Otherwise the server would end the transaction of a second claim after 25 s.
    { table: 'repeated', idleTimeoutMs: null },
  );
  await store.migrate();
  const receiver = receiverOf({
    store,
    storeTimeoutMs: 1_000,
    onSuccess: async ({ data }, { tx }) => {
      await tx.query('INSERT INTO unique_late VALUES ($1), ($1)', [data.id]);
    },
  });
  const ended = await receiver.receive(transferSucceeded());
  const refusal = { message: expect.stringContaining('to call its function once') as string, cause: refusals[0] };
  expect(ended).toMatchObject({ outcome: 'store_unavailable', error: refusal });
  expect(refusals).toMatchObject([{ code: '23505', constraint: 'unique_late_name_key' }, refusal]);
  expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
  await (await claimFree(store)).settle();
});

test('a connection that has fallen silent goes back when it has ended', async () => {
  const { own, proxy } = await poolBehindProxy(server);
  const pool = server.pool({ connectionString: `${own.options.connectionString}${impatience}`, max: 1 });
  pool.on('connect', (client) => client.on('error', () => undefined));
  const { store } = await makeLibrary(pool);
  const claim = await claimFree(store);
  proxy.freeze();
  await claim.release();
  const next = claimFree(store);
  expect(pool.idleCount).toBe(0);
  await proxy.close();
  // The network is there again, at another port: the pool connects to the server itself.
  await expect(next).rejects.toThrow();
  expect(pool.totalCount).toBe(0);
});

test.each([
  ['claim', (store: SqlStore<unknown>, id: string) => store.claim(id, { ...request, token: 'the retry' })],
  ['read', (store: SqlStore<unknown>, id: string) => store.read(id)],
])('a %s on a connection that still has a claim fails, and reads none of its rows as a record', async (_what, use) => {
  let isBroken = true;
  const pool = server.pool({ max: 1 });
  const { store, transaction } = await makeLibrary(pool, async (client, sql) => {
    if (isBroken && /^(ROLLBACK|SELECT 1)/.test(sql)) throw new Error('The client has lost its connection.');
    return client.query(sql);
  });
  const id = randomUUID();
  const left = await claimFree(store, {}, id);
  await transaction.write(left.tx, id);
  await left.release();
  await vi.waitFor(() => {
    expect(pool.idleCount).toBe(1);
  });
  isBroken = false;
  await expect(use(store, id)).rejects.toThrow('another transaction is open');
  // After the error of a read the next statement fails, too, and is rolled back with all the rest.
  const again = await vi.waitUntil(() => claimFree(store, { token: 'the retry' }, id).catch(() => undefined));
  await transaction.write(again.tx, id);
  await again.settle();
  expect(await transaction.count(id)).toBe(1);
});

test('a claim on a connection with an open transaction of the app fails, and keeps none of its writes', async () => {
  const pool = server.pool({ max: 1 });
  const { store, transaction } = await makeLibrary(pool);
  const own = randomUUID();
  const client = await pool.connect();
  await client.query('BEGIN');
  await transaction.write(client, own);
  client.release();
  await expect(store.claim(randomUUID(), request)).rejects.toThrow('another transaction is open');
  await (await claimFree(store)).settle();
  expect(await transaction.count(own)).toBe(0);
});
