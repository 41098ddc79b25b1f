// What becomes of a connection of postgres.js that ends in a transaction, or whose COMMIT is refused: it goes to the
// next transaction, and what the store then sends would reach that.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { Client, type Pool } from 'pg';
import { drizzleStore, postgresJsStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres, { type Sql, type TransactionSql } from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { claimFree } from '../stores/support.js';
import { receiverOf } from '../core/support.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { startPostgresForFile } from '../support/servers/postgres-for-file.js';

let admin: Pool;
const server = startPostgresForFile((started) => {
  admin = started.pool();
  return admin.query('CREATE TABLE written (name text); CREATE TABLE pairs (id text, half text)');
});

/** How a handler writes, in each library on postgres.js, and how its store is made. */
const libraries = {
  'postgres.js': {
    makeStore: (sql: Sql, options: object) => postgresJsStore(sql, options),
    send: (tx: TransactionSql, text: string) => tx.unsafe(text),
  },
  'Drizzle on postgres.js': {
    makeStore: (sql: Sql, options: object) => drizzleStore(drizzle(sql), { dialect: 'postgres', ...options }),
    send: (tx: { execute(text: string): PromiseLike<unknown> }, text: string) => tx.execute(text),
  },
};

const count = async (table: 'written' | 'pairs', where: string): Promise<number> =>
  (await admin.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table} WHERE ${where}`)).rows[0]?.n ?? NaN;

/** Runs a transaction of the app in two steps. Resolves with whether it was committed, and how many steps of it were. */
async function runOwn(sql: Sql): Promise<{ isCommitted: boolean; steps: number }> {
  const id = randomUUID();
  const isCommitted = await sql
    .begin(async (tx) => {
      await tx`INSERT INTO pairs VALUES (${id}, 'first')`;
      // Longer than the store waits before it repeats a ROLLBACK.
      await setTimeout(60);
      await tx`INSERT INTO pairs VALUES (${id}, 'second')`;
    })
    .then(
      () => true,
      () => false,
    );
  return { isCommitted, steps: await count('pairs', `id = '${id}'`) };
}

/**
 * What is sent last before the connection breaks, by its text, and the outcomes of the delivery. PostgreSQL itself ends
 * the connection at `idleTimeoutMs`.
 */
const cuts = {
  idleTimeoutMs: { text: undefined, outcomes: ['store_unavailable'] },
  // The store claims again.
  'the claim': { text: 'INSERT INTO "public"."transfer_callbacks"', outcomes: ['store_unavailable', 'processed'] },
  'the INSERT of the handler': { text: 'INSERT INTO written', outcomes: ['handler_failed'] },
  'the last statement': { text: 'txid_current_if_assigned() = ', outcomes: ['store_unavailable'] },
  'the ROLLBACK': { text: 'ROLLBACK', outcomes: ['handler_failed'] },
};

for (const [name, { makeStore, send }] of Object.entries(libraries)) {
  describe.each([1, 3, 10])(`${name}, with a pool of %d`, (max) => {
    test.each(Object.entries(cuts))(
      'a connection that ends at %s harms neither the process nor a transaction of the app, and the next attempt is processed',
      async (cut, { text, outcomes }) => {
        const proxy = await startLossyProxy(Number(new URL(server.url).port));
        onTestFinished(() => proxy.close());
        const url = new URL(server.url);
        url.port = String(proxy.port);
        const sql = postgres(url.href, { max, onnotice: () => undefined });
        const store = makeStore(sql, text === undefined ? { idleTimeoutMs: 200 } : {});
        await store.migrate();
        for (let round = 0; round < 3; round += 1) {
          let attempts = 0;
          const receiver = receiverOf({
            store: store as ReturnType<typeof postgresJsStore>,
            async onSuccess({ data }, { tx, signal }) {
              attempts += 1;
              await send(tx, `INSERT INTO written VALUES ('${data.id}')`);
              if (attempts > 1) return;
              if (text === undefined) await once(signal, 'abort');
              if (cut === 'the ROLLBACK') throw new Error('the handler fails');
            },
          });
          const callback = transferSucceeded();
          if (text !== undefined) proxy.lose('request', text);
          const received = receiver.receive(callback);
          const own = await Promise.all(Array.from({ length: 2 * max }, () => runOwn(sql)));
          for (const { isCommitted, steps } of own)
            expect([isCommitted, steps]).toEqual([isCommitted, isCommitted ? 2 : 0]);
          expect(outcomes).toContain((await received).outcome);
          expect(['processed', 'duplicate']).toContain((await receiver.receive(callback)).outcome);
          expect(await count('written', `name = '${callback.data.id}'`)).toBe(1);
          expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
        }
        // Without a limit it may wait for the connection that has ended.
        await sql.end({ timeout: 1 });
      },
    );
  });

  test(`a handler of ${name} that ends its transaction is refused, and the next transaction of the app is whole`, async () => {
    const sql = postgres(server.url, { max: 1 });
    const store = makeStore(sql, {});
    await store.migrate();
    for (const text of ['ROLLBACK', ' commit;', 'END; SELECT 1', 'Abort work', "PREPARE TRANSACTION 'a'"]) {
      let own: ReturnType<typeof runOwn> | undefined;
      const receiver = receiverOf({
        store: store as ReturnType<typeof postgresJsStore>,
        async onSuccess({ data }, { tx }) {
          await send(tx, `INSERT INTO written VALUES ('${data.id}')`);
          // It waits for the connection.
          own = runOwn(sql);
          await send(tx, text);
        },
      });
      const callback = transferSucceeded();
      expect([text, await receiver.receive(callback)]).toMatchObject([
        text,
        { outcome: 'handler_failed', error: { code: 'TRANSACTION_CONTROL' } },
      ]);
      expect([text, await own]).toEqual([text, { isCommitted: true, steps: 2 }]);
      expect(await count('written', `name = '${callback.data.id}'`)).toBe(0);
    }
    await sql.end();
  });

  test(`a handler of ${name} is committed although the default level of isolation would refuse its COMMIT`, async () => {
    const sql = postgres(`${server.url}?default_transaction_isolation=serializable`, { max: 1 });
    const rival = new Client(server.url);
    await rival.connect();
    onTestFinished(() => rival.end());
    const store = makeStore(sql, {});
    await store.migrate();
    let own: ReturnType<typeof runOwn> | undefined;
    const receiver = receiverOf({
      store: store as ReturnType<typeof postgresJsStore>,
      async onSuccess({ data }, { tx }) {
        // The two read what the other one writes.
        await rival.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
        await rival.query('SELECT count(*) FROM written');
        await send(tx, 'SELECT count(*) FROM written');
        await send(tx, `INSERT INTO written VALUES ('${data.id}')`);
        await rival.query("INSERT INTO written VALUES ('the rival')");
        await rival.query('COMMIT');
        // It waits for the connection.
        own = runOwn(sql);
      },
    });
    const callback = transferSucceeded();
    expect((await receiver.receive(callback)).outcome).toBe('processed');
    expect(await count('written', `name = '${callback.data.id}'`)).toBe(1);
    expect(await own).toEqual({ isCommitted: true, steps: 2 });
    await sql.end();
  });
}

test('tx of postgres.js refuses a template that ends the transaction, also in a savepoint, and takes a fragment that begins alike', async () => {
  const sql = postgres(server.url, { max: 1 });
  const store = postgresJsStore(sql);
  await store.migrate();
  const claim = await claimFree(store);
  const { tx } = claim;
  const refused = expect.objectContaining({ code: 'TRANSACTION_CONTROL' }) as Error;
  expect(() => tx`ROLLBACK`).toThrow(refused);
  await expect(tx.savepoint((inner) => inner`COMMIT`)).rejects.toEqual(refused);
  await expect(tx.savepoint((inner) => inner.unsafe('COMMIT'))).rejects.toEqual(refused);
  await tx`SAVEPOINT a`;
  await tx`ROLLBACK TO a`;
  const fragment = tx`end_at > start`;
  expect(await tx`SELECT 1 AS found FROM (SELECT 2 AS end_at, 1 AS start) AS times WHERE ${fragment}`).toEqual([
    { found: 1 },
  ]);
  await claim.release();
  await sql.end();
});
