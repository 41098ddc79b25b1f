import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { pgStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { startLedgerForFile } from '../support/servers/postgres-for-file.js';
import { poolBehindProxy, poolOfRole, receiverOn } from '../support/servers/postgres.js';
import { claimFree, requestOf } from './support.js';
import type { SqlStoreOptions } from '../../src/stores/sql/options.js';

const ledger = startLedgerForFile({ max: 30 });

/** Delivers a callback until it is acknowledged twice, and expects that. */
async function expectTwoDeliveries(on: Pool, options?: SqlStoreOptions, callback = transferSucceeded()) {
  const receiver = receiverOn(on, {}, options);
  for (const outcome of ['processed', 'duplicate']) expect((await receiver.receive(callback)).outcome).toBe(outcome);
  return callback.data;
}

test('the table can have any name in any schema, and concurrent calls of migrate create it once', async () => {
  const schema = `of "${randomUUID().slice(0, 8)}"`;
  await ledger.pool.query(`CREATE SCHEMA "${schema.replaceAll('"', '""')}"`);
  const options = { schema, table: `callbacks' "table" \\ é` };
  const stores = Array.from({ length: 9 }, () => pgStore(ledger.server.pool({ max: 1 }), options));
  await Promise.all(stores.map((store) => store.migrate()));
  const callback = transferSucceeded();
  await expectTwoDeliveries(ledger.pool, options, callback);
  // Another table knows nothing of it.
  await expectTwoDeliveries(ledger.pool, {}, callback);
  await ledger.pool.query(`DROP SCHEMA "${schema.replaceAll('"', '""')}" CASCADE`);
});

test('migrationSql creates the table, and may run again', async () => {
  const store = pgStore(ledger.pool, { table: 'by_sql' });
  await ledger.pool.query(store.migrationSql);
  await ledger.pool.query(store.migrationSql);
  await expectTwoDeliveries(ledger.pool, { table: 'by_sql' });
});

test.each([
  ['of the connection', (schema: string) => ({ options: `-c search_path=${schema}` }), undefined],
  ['that the handler leaves', () => ({ max: 1 }), (schema: string) => `SET search_path = ${schema}, public`],
])('no callback runs twice, whatever the search_path %s is', async (_of, toConfig, toSql) => {
  const schema = `tenant_${randomUUID().slice(0, 8)}`;
  await ledger.pool.query(`CREATE SCHEMA ${schema}`);
  await pgStore(ledger.pool, { schema }).migrate();
  const receiver = receiverOn(ledger.server.pool(toConfig(schema)), {
    async onSuccess({ data }, { tx }) {
      await tx.query('INSERT INTO public.ledger VALUES ($1, $2)', [data.id, data.status]);
      if (toSql !== undefined) await tx.query(toSql(schema));
    },
  });
  const callback = transferSucceeded();
  for (const outcome of ['processed', 'duplicate', 'duplicate']) {
    expect((await receiver.receive(callback)).outcome).toBe(outcome);
  }
  expect(await ledger.bookings(callback.data.id)).toEqual(['SUCCESS']);
  expect((await pgStore(ledger.pool).read(callback.data.id)).state).toBe('handled');
});

test('while the table is missing no callback is acknowledged, and each call rejects with its name and the code to write', async () => {
  const store = pgStore(ledger.pool, { table: 'not_there' });
  const missing = {
    code: 'NO_TABLE',
    message: containing(
      'The table `public.not_there` does not exist. Call `await store.migrate()` when the app starts',
    ),
    cause: expect.objectContaining({ code: '42P01' }) as unknown,
  };
  const receiver = receiverOn(ledger.pool, {}, { table: 'not_there' });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'store_unavailable', error: missing });
  expect(await receiver.check()).toMatchObject({ ok: false, error: missing });
  await expect(store.read(randomUUID())).rejects.toMatchObject(missing);
  await expect(store.forget(randomUUID(), '')).rejects.toMatchObject(missing);
  await expect(store.prune({ olderThanMs: 90_001 })).rejects.toMatchObject(missing);
});

test('check warns of a COMMIT that does not wait for the disk, and leaves no record that counts', async () => {
  const live = 'SELECT id FROM transfer_callbacks WHERE expires_at > 0 ORDER BY id';
  const { rows } = await ledger.pool.query(live);
  for (const value of ['off', 'local', 'on']) {
    const logger = recordingLogger();
    const receiver = receiverOn(ledger.server.pool({ options: `-c synchronous_commit=${value}` }), { logger });
    expect(await receiver.check()).toMatchObject({ ok: true });
    const expected = containing(
      '`synchronous_commit` is off: a crash of the database or its machine may lose callbacks',
    );
    expect(logger.lines.map(({ message }) => message)).toEqual(value === 'off' ? [expected] : []);
  }
  expect((await ledger.pool.query(live)).rows).toEqual(rows);
});

test('no other failure is taken for a missing table', async () => {
  const { own: down, proxy } = await poolBehindProxy(ledger.server);
  await proxy.close();
  const exhausted = ledger.server.pool({ max: 1 });
  const client = await exhausted.connect();
  const failing = [
    ['ECONNREFUSED', receiverOn(down)],
    ['42501', receiverOn(await poolOfRole(ledger.server, 'SELECT'))],
    ['STORE_TIMEOUT', receiverOn(exhausted, { storeTimeoutMs: 200, inFlightWaitMs: 0 })],
    // A table that the handler misses, and one that a trigger misses, whose name begins as that of the store.
    ['42P01', receiverOn(ledger.pool, { onSuccess: (_callback, { tx }) => tx.query('SELECT * FROM ledgers') })],
    ['42P01', receiverOn(ledger.pool, {}, { table: 'triggered' })],
  ] as const;
  await pgStore(ledger.pool, { table: 'triggered' }).migrate();
  await ledger.pool.query(`CREATE FUNCTION archive() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.triggered_archive VALUES (NEW.id); RETURN NEW; END';
    CREATE TRIGGER archive BEFORE INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION archive()`);
  for (const [code, receiver] of failing) {
    const outcome = await receiver.receive(transferSucceeded());
    expect(outcome).toMatchObject({ error: { code, message: expect.not.stringContaining('migrate') as string } });
  }
  client.release();
});

test('a table that is dropped and created again is used without a restart of the process', async () => {
  const store = pgStore(ledger.pool, { table: 'created_again' });
  for (const token of ['a', 'b']) {
    await ledger.pool.query('DROP TABLE IF EXISTS created_again');
    await store.migrate();
    await (await claimFree(store, { token }, 'the id')).settle();
  }
});

test('the texts of a callback cannot change the SQL, with standard_conforming_strings on or off', async () => {
  for (const setting of ['on', 'off']) {
    const nasty = String.raw`'; DROP TABLE ledger; -- \' " $1 é 付款`;
    const own = ledger.server.pool({ max: 1, options: `-c standard_conforming_strings=${setting}` });
    const callback = transferSucceeded({ id: `${nasty} ${randomUUID()}`, externalId: `${nasty}\0` });
    const { id } = await expectTwoDeliveries(own, {}, callback);
    const { rows } = await ledger.pool.query('SELECT external_id FROM transfer_callbacks WHERE id = $1', [id]);
    expect(rows).toEqual([{ external_id: `${nasty}\uFFFD` }]);
  }
});

test.each<[string, (type: number) => (value: string) => unknown]>([
  ['every value as text', () => (value) => value],
  ['every value as a number where it can', () => (value) => (Number.isNaN(Number(value)) ? value : Number(value))],
])('a driver that returns %s keeps and reads the same records', async (_form, getTypeParser) => {
  const own: Pool = ledger.server.pool({ max: 2, types: { getTypeParser } });
  const { id } = await expectTwoDeliveries(own);
  const store = pgStore(own);
  const record = await store.read(id);
  expect(record).toEqual(await pgStore(ledger.pool).read(id));
  expect(record.state === 'handled' && (await store.forget(id, record.fingerprint))).toBe(true);
});

test('a role needs rights to the table only, can call migrate once it is there, and is told what it lacks', async () => {
  const app = await poolOfRole(ledger.server, 'SELECT, INSERT, UPDATE, DELETE');
  const store = pgStore(app);
  await store.migrate();
  await expectTwoDeliveries(app);
  expect(await store.prune({ olderThanMs: Number.MAX_SAFE_INTEGER })).toBe(0);
  await expect(pgStore(app, { table: 'not_there' }).migrate()).rejects.toMatchObject({ code: '42501' });
  const reader = await poolOfRole(ledger.server, 'SELECT');
  expect(await receiverOn(reader).receive(transferSucceeded())).toMatchObject({
    outcome: 'store_unavailable',
    error: expect.objectContaining({ code: '42501' }) as unknown,
  });
});

test('a server that refuses every write acknowledges what was handled before, and nothing else', async () => {
  const { data } = await expectTwoDeliveries(ledger.pool).then((handled) => transferSucceeded(handled));
  const readOnly = ledger.server.pool({ options: '-c default_transaction_read_only=on' });
  const receiver = receiverOn(readOnly);
  expect((await receiver.receive(transferSucceeded(data))).outcome).toBe('duplicate');
  expect(await receiver.receive(transferSucceeded())).toMatchObject({
    outcome: 'store_unavailable',
    error: expect.objectContaining({ code: '25006' }) as unknown,
  });
  expect((await pgStore(readOnly).read(data.id)).state).toBe('handled');
});

test('connections that are serializable by default claim and settle', async () => {
  const own = ledger.server.pool({ options: '-c default_transaction_isolation=serializable' });
  const outcomes = await Promise.all(
    Array.from({ length: 20 }, async () => (await receiverOn(own).receive(transferSucceeded())).outcome),
  );
  expect(new Set(outcomes)).toEqual(new Set(['processed']));
});

test('two calls of prune and twenty claims of what they delete end, and no claim is lost', async () => {
  const table = 'pruned_twice';
  const stores = [pgStore(ledger.pool, { table }), pgStore(ledger.server.pool(), { table })];
  await stores[0]?.migrate();
  await ledger.pool.query(`INSERT INTO ${table} SELECT n, '', '', '', '', 0, 0, 0 FROM generate_series(1, 3000) AS n`);
  // A claim that meets a row which is being deleted is in progress: its caller claims again.
  const pending = Array.from({ length: 20 }, (_, n) =>
    vi.waitFor(() => claimFree(stores[0] as never, {}, String(n + 1))),
  );
  const [claims] = await Promise.all([
    Promise.all(pending),
    ...stores.map((store) => store.prune({ olderThanMs: 90_001 })),
  ]);
  for (const claim of claims) expect(await claim.settle()).toEqual({ overlapped: false });
  expect((await ledger.pool.query(`SELECT FROM ${table}`)).rowCount).toBe(20);
});

test('copies of a handled callback do not hinder each other, back to back or at once, on one pool or on several', async () => {
  const stores = Array.from({ length: 20 }, () => pgStore(ledger.pool));
  for (let at = 0; at < 4; at += 1) stores.push(pgStore(ledger.server.pool({ max: 1 })));
  const id = randomUUID();
  await (await claimFree(stores[0] as never, {}, id)).settle();
  const states: string[] = [];
  for (let copy = 0; copy < 200; copy += 1)
    states.push((await pgStore(ledger.pool).claim(id, requestOf(`${copy}`))).state);
  for (let round = 0; round < 10; round += 1) {
    const replies = await Promise.all(stores.map((store, at) => store.claim(id, requestOf(`${round} ${at}`))));
    states.push(...replies.map(({ state }) => state));
  }
  expect(new Set(states)).toEqual(new Set(['handled']));
});

test('of twenty concurrent claims on an expired record at most one is granted, and none waits for another', async () => {
  const stores = Array.from({ length: 20 }, () => pgStore(ledger.pool));
  for (const handledAt of ['0', 'NULL']) {
    const id = randomUUID();
    await ledger.pool.query(
      `INSERT INTO transfer_callbacks VALUES ('${id}', 'x', '', '', 'facts', 0, ${handledAt}, 1)`,
    );
    const claims = await Promise.all(stores.map((store, index) => store.claim(id, requestOf(String(index)))));
    const granted = claims.filter((reply) => reply.state === 'claimed');
    expect(granted.length).toBeLessThanOrEqual(1);
    expect(claims.filter(({ state }) => state === 'in_progress')).toHaveLength(20 - granted.length);
    // A claim that finds the record holds the lock meanwhile, so each of them may be refused. The next claim is granted
    // then.
    const claim = granted[0]?.claim ?? (await claimFree(pgStore(ledger.pool), {}, id));
    await claim.settle();
    expect((await pgStore(ledger.pool).claim(id, requestOf('next'))).state).toBe('handled');
  }
});
