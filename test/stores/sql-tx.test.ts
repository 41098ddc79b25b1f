import type { Client, PoolClient } from 'pg';
import { prismaStore, sqlStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { book, receiverOn } from '../support/servers/postgres.js';
import { inPgTransaction } from '../support/helpers/transactions.js';
import { claimFree, requestOf } from './support.js';

const ledger = startLedgerForFile({ max: 20 });

test('a callback of `pg` hears that its query is refused, in the handler and after it', async () => {
  const refusals: unknown[] = [];
  const receiver = receiverOn(ledger.pool, {
    async onSuccess(_callback, { tx }) {
      const send = (text: string) =>
        new Promise<void>((resolve) => {
          tx.query(text, [], (error) => {
            refusals.push(error);
            resolve();
          });
        });
      await send('ROLLBACK');
      setImmediate(() => void send('SELECT 1'));
    },
  });
  expect((await receiver.receive(transferSucceeded())).outcome).toBe('processed');
  await vi.waitFor(() => {
    expect(refusals).toHaveLength(2);
  });
  expect(refusals).toMatchObject([{ code: 'TRANSACTION_CONTROL' }, { code: 'TRANSACTION_CONTROL' }]);
});

test('what a handler sets on its client, as a wrapper of `query`, is gone with the handler', async () => {
  const own = ledger.server.pool({ max: 1 });
  const texts: unknown[] = [];
  const receiver = receiverOn(own, {
    async onSuccess(given, { tx }) {
      const { query } = tx as unknown as { query: (...args: unknown[]) => unknown };
      Object.assign(tx, {
        tenant: 'a',
        query(...args: unknown[]): unknown {
          texts.push(args[0]);
          return query(...args);
        },
      });
      await book(given, { tx });
      expect([tx.escapeIdentifier('a"b'), Reflect.get(tx, 'tenant')]).toEqual(['"a""b"', 'a']);
    },
  });
  for (const callback of [transferSucceeded(), transferSucceeded()]) {
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
  }
  // One of each handler, and nothing of the store.
  expect(texts).toHaveLength(2);
  const client = await own.connect();
  expect([Object.hasOwn(client, 'query'), 'tenant' in client]).toEqual([false, false]);
  client.release();
});

test('a handler that ends its client of `pg`, by a promise or a callback, is committed, and its client goes back', async () => {
  const own = ledger.server.pool({ max: 1 });
  const receiver = receiverOn(own, {
    async onSuccess(given, { tx }) {
      await book(given, { tx });
      const client = tx as unknown as Client;
      await client.end();
      await new Promise<unknown>((resolve) => {
        client.end(resolve);
      });
    },
  });
  const callback = transferSucceeded();
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
  expect([own.totalCount, own.idleCount]).toEqual([1, 1]);
});

test('what is to follow the commit sees the writes, and is not called if they were rolled back', async () => {
  const seen: unknown[] = [];
  const receiver = (commits: boolean) =>
    receiverOn(ledger.pool, {
      async onSuccess(callback, context) {
        await book(callback, context);
        context.afterCommit(async () => seen.push(await ledger.bookings(callback.data.id)));
        if (!commits) await context.tx.query('/* by an ORM */ ROLLBACK');
      },
    });
  const lost = receiver(false);
  expect((await lost.receive(transferSucceeded())).outcome).toBe('store_unavailable');
  expect(await lost.close()).toEqual({ unfinished: 0, ids: [] });
  expect(seen).toEqual([]);
  const kept = receiver(true);
  expect((await kept.receive(transferSucceeded())).outcome).toBe('processed');
  expect(await kept.close()).toEqual({ unfinished: 0, ids: [] });
  expect(seen).toEqual([['SUCCESS']]);
});

test('a library whose transaction resolves although the handler has rolled it back, as that of Knex, settles nothing', async () => {
  interface Tx {
    readonly client: PoolClient;
    rollback(): Promise<void>;
  }
  const store = sqlStore<Tx>({
    dialect: 'postgres',
    query: (sql, tx) => (tx?.client ?? ledger.pool).query(sql),
    transaction: (work) =>
      new Promise<void>((resolve, reject) => {
        const rollback = async (client: PoolClient): Promise<void> => {
          await client.query('ROLLBACK');
          resolve();
        };
        inPgTransaction(ledger.pool, (client) => work({ client, rollback: () => rollback(client) })).then(
          resolve,
          reject,
        );
      }),
  });
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await book(transferSucceeded({ id }), { tx: claim.tx.client });
  await claim.tx.rollback();
  await expect(claim.settle()).rejects.toThrow();
  expect(await ledger.bookings(id)).toEqual([]);
  expect(await store.read(id)).toEqual({ state: 'free' });
});

test.each([
  ['resolves without a call of its function', () => Promise.resolve(), 'Expected `transaction` to call its function.'],
  ['rejects before it', () => Promise.reject(new Error('no connection')), 'no connection'],
])('a claim through a library whose `transaction` %s rejects', async (_how, transaction, message) => {
  const store = sqlStore({ dialect: 'postgres', query: (sql) => ledger.pool.query(sql), transaction });
  await expect(store.claim(crypto.randomUUID(), requestOf('a'))).rejects.toThrow(message);
});

interface Library {
  readonly client: PoolClient;
  readonly ledger: {
    add(id: string): Promise<unknown>;
    /** A call of two steps, of which the second fails. */
    addTwice(): Promise<unknown>;
  };
}

/**
 * The store of a library whose models are properties of its transaction, as those of Prisma, and of what it sends last.
 */
function libraryStore(sendLast: (client: PoolClient, sql: string) => unknown) {
  return sqlStore<Library>({
    dialect: 'postgres',
    query: (sql, tx) =>
      tx !== undefined && sql.startsWith('SELECT') ? sendLast(tx.client, sql) : (tx?.client ?? ledger.pool).query(sql),
    transaction: (work) =>
      inPgTransaction(ledger.pool, (client) =>
        work({
          client,
          ledger: {
            add: (id) => client.query('INSERT INTO ledger VALUES ($1)', [id]),
            addTwice: () => client.query('SELECT 1').then(() => client.query('SELECT 1/0')),
          },
        }),
      ),
  });
}

test('a model of a transaction refuses every query after the handler, and a promise may still resolve with the transaction', async () => {
  const id = crypto.randomUUID();
  const store = libraryStore((client, sql) => client.query(sql));
  const claim = await claimFree(store, {}, id);
  const { tx } = claim;
  await tx.ledger.add(id);
  const handled = claim.settle();
  const refused = { code: 'TRANSACTION_CONTROL', message: containing('the handler has finished') };
  await expect((async () => tx.ledger.add(id))()).rejects.toMatchObject(refused);
  expect(await Promise.resolve(tx)).toBe(tx);
  await handled;
  expect(await ledger.bookings(id)).toHaveLength(1);
});

test('a handled callback has its writes, although a call of several steps that its handler has left running fails', async () => {
  const id = crypto.randomUUID();
  const store = libraryStore((client, sql) => client.query(sql));
  const claim = await claimFree(store, {}, id);
  await claim.tx.ledger.add(id);
  const left = claim.tx.ledger.addTwice();
  left.catch(() => undefined);
  await claim.settle();
  await expect(left).rejects.toThrow('division by zero');
  expect(await ledger.bookings(id)).toHaveLength(1);
  expect((await store.read(id)).state).toBe('handled');
});

type Operation = (operation: { args: unknown; query: (args: unknown) => Promise<unknown> }) => Promise<unknown>;

interface Extended {
  $extends(given: { query: { $allOperations: Operation } }): Extended;
  $queryRawUnsafe(sql: string): Promise<unknown>;
  $transaction(work: (tx: Extended) => Promise<void>, times?: unknown): Promise<void>;
  /** `addTwice` has two steps, of which the second fails. */
  readonly ledger: { add: (id: string) => Promise<unknown>; addTwice: () => Promise<unknown> };
}

/** A library whose operations pass through an extension, as those of Prisma do. The real ones are tried in test/sql. */
function extendedLibrary(extension?: Operation, connection?: PoolClient): Extended {
  const run = (args: unknown, steps: () => Promise<unknown>): Promise<unknown> =>
    extension === undefined ? steps() : extension({ args, query: steps });
  const send = async (text: string, values: unknown[] = []) =>
    (await (connection ?? ledger.pool).query<object>(text, values)).rows;
  return {
    $extends: ({ query }) => extendedLibrary(query.$allOperations, connection),
    $queryRawUnsafe: (sql) => run([sql], () => send(sql)),
    ledger: {
      add: (id) => run({ id }, () => send('INSERT INTO ledger VALUES ($1)', [id])),
      addTwice: () => run({}, () => send('SELECT pg_sleep(0.05)').then(() => send('SELECT 1/0'))),
    },
    $transaction: (work) => inPgTransaction(ledger.pool, (client) => work(extendedLibrary(extension, client))),
  };
}

test('prismaStore waits for an operation that a handler has left running, and settles nothing if it fails', async () => {
  const store = prismaStore(extendedLibrary(), { dialect: 'postgres' });
  const [whole, failing] = [crypto.randomUUID(), crypto.randomUUID()];
  const first = await claimFree(store, {}, whole);
  const { add } = first.tx.ledger;
  void add(whole);
  await first.settle();
  expect(await ledger.bookings(whole)).toHaveLength(1);
  // What it starts later is refused, although it has kept the method.
  await expect(add(whole)).rejects.toMatchObject({ code: 'TRANSACTION_CONTROL' });

  const second = await claimFree(store, {}, failing);
  await second.tx.ledger.add(failing);
  second.tx.ledger.addTwice().catch(() => undefined);
  await expect(second.settle()).rejects.toThrow('current transaction is aborted');
  expect(await ledger.bookings(failing)).toEqual([]);
  expect((await store.read(failing)).state).toBe('free');
});

test('prismaStore gives Prisma the time of the request for a connection, and no deadline, in place of its own of 2 s and 5 s', async () => {
  const asked: unknown[] = [];
  const library = extendedLibrary();
  const timed: Extended = {
    ...library,
    $extends: (given) => ({
      ...library.$extends(given),
      $transaction(work, times) {
        asked.push(times);
        return library.$extends(given).$transaction(work);
      },
    }),
  };
  await (await claimFree(prismaStore(timed, { dialect: 'postgres' }), { queueMs: 99.5 })).release();
  expect(asked).toEqual([{ maxWait: 100, timeout: 2_147_483_647 }]);
});

// Prisma resolves with it if a query before it has failed, and has not sent the statement.
test('a callback whose last statement resolves with undefined is not handled', async () => {
  const id = crypto.randomUUID();
  const store = libraryStore(() => undefined);
  const claim = await claimFree(store, {}, id);
  await claim.tx.ledger.add(id);
  await expect(claim.settle()).rejects.toThrow('Expected `query` to resolve with rows, got undefined.');
  expect(await ledger.bookings(id)).toEqual([]);
  expect((await store.claim(id, requestOf('b'))).state).toBe('claimed');
});
