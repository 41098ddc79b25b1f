import { setTimeout as pause } from 'node:timers/promises';
import { Query, type PoolClient } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { later } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { book, poolBehindProxy, receiverOn } from '../support/servers/postgres.js';
import { claimFree, requestOf } from './support.js';

const ledger = startLedgerForFile({ max: 20 });

test('the writes of a handler and the record are committed together', async () => {
  const callback = transferSucceeded();
  const { id, externalId } = callback.data;
  const seenByOthers: unknown[] = [];
  const receiver = receiverOn(ledger.pool, {
    async onSuccess(...given) {
      await book(...given);
      seenByOthers.push(...(await ledger.bookings(id)), (await pgStore(ledger.pool).read(id)).state);
    },
  });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
  expect(seenByOthers).toEqual(['claimed']);
  expect(await ledger.bookings(id)).toEqual(['SUCCESS']);
  const { rows } = await ledger.pool.query('SELECT * FROM transfer_callbacks WHERE id = $1', [id]);
  expect(rows).toEqual([
    {
      id,
      token: expect.any(String) as string,
      event: 'transfer.success',
      external_id: externalId,
      fingerprint: `["SUCCESS",15000,"XAF","${externalId}"]`,
      claimed_at: expect.any(String) as string,
      handled_at: expect.any(String) as string,
      expires_at: expect.any(String) as string,
    },
  ]);
  const [row] = rows as Record<string, string>[];
  // `retentionMs`, and what a handler may take, so that no statement must correct it when the handler has succeeded.
  expect(Number(row?.expires_at) - Number(row?.handled_at)).toBe(604_800_000 + 6 * 20_000 + 15_000);
  expect((await receiver.receive(callback)).outcome).toBe('duplicate');
  expect((await receiver.receive(transferFailed({ id, externalId }))).outcome).toBe('conflict');
  expect(await ledger.bookings(id)).toEqual(['SUCCESS']);
});

test('the writes of a handler that fails are rolled back, and the next delivery runs it again', async () => {
  const callback = transferFailed();
  const failing = receiverOn(ledger.pool, {
    async onFailed(...given) {
      await book(...given);
      throw new Error('after writing');
    },
  });
  expect((await failing.receive(callback)).outcome).toBe('handler_failed');
  expect(await ledger.bookings(callback.data.id)).toEqual([]);
  expect((await receiverOn(ledger.pool).receive(callback)).outcome).toBe('processed');
  expect(await ledger.bookings(callback.data.id)).toEqual(['FAILED']);
});

test.each<[string, (tx: PoolClient) => Promise<unknown>, string]>([
  ['sends ROLLBACK and begins another transaction', (tx) => tx.query('SELECT 1; ROLLBACK; BEGIN'), '22P02'],
  ['writes what the commit finds to be wrong', (tx) => tx.query('INSERT INTO moves VALUES (1)'), '23503'],
])('a handler that %s has not succeeded, and the next delivery is processed', async (_what, steps, code) => {
  await ledger.pool.query(`CREATE TABLE IF NOT EXISTS accounts (id int PRIMARY KEY);
      CREATE TABLE IF NOT EXISTS moves (account int REFERENCES accounts DEFERRABLE INITIALLY DEFERRED)`);
  const callback = transferSucceeded();
  const receiver = receiverOn(ledger.pool, {
    async onSuccess(...given) {
      await book(...given);
      await steps(given[1].tx);
    },
  });
  expect(await receiver.receive(callback)).toMatchObject({
    outcome: 'store_unavailable',
    error: expect.objectContaining({ code }) as unknown,
  });
  expect(await ledger.bookings(callback.data.id)).toEqual([]);
  expect((await receiverOn(ledger.pool).receive(callback)).outcome).toBe('processed');
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

/** How every version writes the text of a lock: two versions run during a deployment. */
const lockNumber = `hashtextextended(convert_from(decode($1, 'hex'), 'UTF8') COLLATE "default", 0)::text`;

test.each(['7d2c4e0a', 'x y.z/["a"]=+,_', "back\\slash 'quote' -- ? $1 :name", 'é縗😀'])(
  'the number of the lock of `%s` is that of its text, however a statement writes it',
  async (text) => {
    const id = `${text} ${crypto.randomUUID()}`;
    const claim = await claimFree(pgStore(ledger.pool), {}, id);
    const { rows } = await ledger.pool.query<{ held: string }>(
      `SELECT (classid::bigint << 32 | objid::bigint)::text AS held FROM pg_locks WHERE locktype = 'advisory'
        AND (classid::bigint << 32 | objid::bigint)::text = ${lockNumber}`,
      [Buffer.from(`"public"."transfer_callbacks" ${id}`).toString('hex')],
    );
    await claim.release();
    expect(rows).toHaveLength(1);
  },
);

test.each<[string, (tx: PoolClient) => Promise<unknown>]>([
  ['a text', (tx) => tx.query('ROLLBACK')],
  ['a config object', (tx) => tx.query({ text: 'COMMIT AND CHAIN', rowMode: 'array' })],
  ['a query object', (tx) => tx.query(new Query('begin isolation level serializable')) as never],
])('a statement of a handler that ends its transaction is refused as %s, and changes nothing', async (_as, send) => {
  const callback = transferSucceeded();
  let refusal: unknown;
  const receiver = receiverOn(ledger.pool, {
    async onSuccess(...given) {
      await book(...given);
      await send(given[1].tx).catch((error: unknown) => (refusal = error));
    },
  });
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(refusal).toMatchObject({
    code: 'TRANSACTION_CONTROL',
    message: containing('the store ends the transaction. Return to commit, throw to roll back'),
  });
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test.each(['SET LOCAL ROLE tenant', 'SET TRANSACTION READ ONLY', 'RESET ALL'])(
  'a handler that sends %s is committed, whether it takes long or not',
  async (statement) => {
    await ledger.pool.query(`DO $$ BEGIN CREATE ROLE tenant; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
      GRANT INSERT ON ledger TO tenant`);
    for (const pauseMs of [0, 1_100]) {
      const callback = transferSucceeded();
      const receiver = receiverOn(ledger.pool, {
        async onSuccess(given, { tx }) {
          if (statement.includes('ROLE')) await tx.query(statement);
          await book(given, { tx });
          await tx.query(statement);
          await pause(pauseMs);
        },
      });
      expect((await receiver.receive(callback)).outcome).toBe('processed');
      expect((await receiver.receive(callback)).outcome).toBe('duplicate');
      expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
    }
  },
);

test('what a handler commits behind a comment is kept with the record, and never written again', async () => {
  for (const goesOn of [true, false]) {
    const callback = transferSucceeded();
    const receiver = receiverOn(ledger.pool, {
      async onSuccess(given, { tx }) {
        await book(given, { tx });
        await tx.query('/* by an ORM */ COMMIT');
        if (!goesOn) throw new Error('after the COMMIT');
      },
    });
    expect((await receiver.receive(callback)).outcome).toBe(goesOn ? 'processed' : 'handler_failed');
    expect((await receiver.receive(callback)).outcome).toBe('duplicate');
    expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
  }
});

test('a handler may undo a part by SAVEPOINT and ROLLBACK TO, and run blocks with BEGIN and END in them', async () => {
  const callback = transferSucceeded();
  const receiver = receiverOn(ledger.pool, {
    async onSuccess(given, { tx }) {
      await book(given, { tx });
      await tx.query('SAVEPOINT part');
      await book(given, { tx });
      await tx.query('SELECT 1/0').catch(() => tx.query('ROLLBACK TO part'));
      await tx.query('DO $$ BEGIN PERFORM 1; END $$');
      await tx.query('rollback work to savepoint part');
    },
  });
  expect((await receiver.receive(callback)).outcome).toBe('processed');
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a callback whose commit succeeded but whose reply was lost is found handled', async () => {
  const { own, proxy } = await poolBehindProxy(ledger.server);
  const callback = transferSucceeded();
  proxy.lose('reply', 'claim not held');
  expect((await receiverOn(own).receive(callback)).outcome).toBe('processed');
  expect(proxy.lost()).toBe(1);
  expect((await receiverOn(own).receive(callback)).outcome).toBe('duplicate');
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a callback is processed whose claim was granted but whose reply was lost', async () => {
  const { own, proxy } = await poolBehindProxy(ledger.server);
  const callback = transferSucceeded();
  proxy.lose('reply', 'INSERT INTO');
  const outcomes = [(await receiverOn(own).receive(callback)).outcome];
  // The connection has ended, and its transaction with it.
  outcomes.push((await receiverOn(own).receive(callback)).outcome);
  expect([outcomes, proxy.lost()]).toEqual([['store_unavailable', 'processed'], 1]);
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a lease that has lapsed is not renewed before the reply to its rollback has come', async () => {
  const { own, proxy } = await poolBehindProxy(ledger.server);
  const claim = await claimFree(pgStore(own), { leaseMs: 200 }, crypto.randomUUID());
  proxy.fallSilent();
  await pause(300);
  expect(await claim.renew()).toBe(false);
});

test('a claim that has lapsed cannot be handled, and a settle that is sent again resolves as the first one', async () => {
  const store = pgStore(ledger.pool);
  const id = crypto.randomUUID();
  const lapsed = await claimFree(store, { leaseMs: 100 }, id);
  await vi.waitFor(async () => {
    expect((await store.read(id)).state).toBe('free');
  });
  const lost = { code: 'LEASE_LOST', cause: expect.any(Error) as unknown };
  await expect(lapsed.settle()).rejects.toMatchObject(lost);
  await expect(lapsed.settle()).rejects.toMatchObject(lost);
  const { own, proxy } = await poolBehindProxy(ledger.server);
  const claim = await claimFree(pgStore(own), {}, id);
  proxy.lose('reply', 'claim not held');
  expect(await claim.settle()).toEqual({ overlapped: false });
  // What is known to be committed needs no look.
  await proxy.close();
  expect(await claim.settle()).toEqual({ overlapped: false });
  expect(await claim.renew()).toBe(false);
});

test('a handler that runs beyond the longest lease can write nothing later', async () => {
  const callback = transferSucceeded();
  const own = ledger.server.pool({ max: 1 });
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
    expect(own.idleCount).toBe(own.totalCount);
  });
  goOn.resolve();
  expect(await ended.promise).toMatchObject({ code: 'TRANSACTION_CONTROL' });
  await vi.waitFor(async () => {
    expect((await receiverOn(ledger.pool).receive(callback)).outcome).toBe('processed');
  });
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
});

test('a statement that a failed handler sends later writes nothing, not even when the next delivery has its client', async () => {
  const own = ledger.server.pool({ max: 1 });
  const [failed, goOn, stray, next] = [transferSucceeded(), later(), later<unknown>(), transferSucceeded()];
  const kept: PoolClient[] = [];
  const receiver = receiverOn(own, {
    async onSuccess(callback, context) {
      kept.push(context.tx);
      if (callback.data.id === next.data.id) {
        goOn.resolve();
        await stray.promise;
        await book(callback, context);
        // The client is the store's: the pool does not get it back by this.
        for (const client of kept) client.release();
        expect(own.idleCount).toBe(0);
        return;
      }
      void goOn.promise.then(() => book(callback, context)).then(stray.resolve, stray.resolve);
      throw new Error('one branch of two');
    },
  });
  expect((await receiver.receive(failed)).outcome).toBe('handler_failed');
  // On the very client of the first: the pool has no other.
  expect((await receiver.receive(next)).outcome).toBe('processed');
  expect(await stray.promise).toMatchObject({ code: 'TRANSACTION_CONTROL' });
  expect(await ledger.bookings(failed.data.id)).toEqual([]);
  expect(await ledger.bookings(next.data.id)).toEqual(['SUCCESS']);
  expect([own.totalCount, own.idleCount]).toEqual([1, 1]);
});

test('a fresh callback costs two round trips and a duplicate as many, and the client keeps no listener', async () => {
  const own = ledger.server.pool({ max: 1 });
  const store = pgStore(own);
  const client = await own.connect();
  const query = vi.spyOn(client, 'query');
  const listeners = client.listenerCount('error');
  client.release();
  const id = crypto.randomUUID();
  const claim = await claimFree(store, {}, id);
  await claim.settle();
  expect(query).toHaveBeenCalledTimes(2);
  expect((await store.claim(id, requestOf('b'))).state).toBe('handled');
  await vi.waitFor(() => {
    expect(own.idleCount).toBe(1);
  });
  expect(query).toHaveBeenCalledTimes(4);
  // The pool has a listener on clients that are idle.
  expect(client.listenerCount('error')).toBe(listeners + 1);
});
