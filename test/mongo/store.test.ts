import { randomUUID } from 'node:crypto';
import { MongoClient, type ClientSession } from 'mongodb';
import { MongoClient as MongoClient6 } from 'mongodb6';
import { mongoStore, transferCallbackReceiver, type Claim, type MongoStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { startMongo, type MongoServer } from './servers.js';
import { createCollections } from './transaction.js';

let server: MongoServer;
let client: MongoClient;
let store: MongoStore<ClientSession>;

beforeAll(async () => {
  server = await startMongo();
  client = new MongoClient(server.url);
  store = mongoStore(client);
  await store.migrate();
  await createCollections(client);
  await client.db().createCollection('accounts');
});
afterAll(async () => {
  await client.close();
  await server.stop();
});

const request = { token: 'one', fingerprint: 'facts', leaseMs: 10_000, retentionMs: 100_000 };

async function hold<Tx>(of: MongoStore<Tx>, key: string, changes: Partial<typeof request> = {}): Promise<Claim<Tx>> {
  const reply = await of.claim(key, { ...request, ...changes });
  return reply.state === 'claimed' ? reply.claim : expect.fail(reply.state);
}

interface Account {
  _id: string;
  balance: number;
}

const pay = async (_id: string, tx: ClientSession): Promise<unknown> =>
  client
    .db()
    .collection<Account>('accounts')
    .updateOne({ _id }, { $inc: { balance: 1 } }, { session: tx });

async function openAccount(): Promise<string> {
  const _id = randomUUID();
  await client.db().collection<Account>('accounts').insertOne({ _id, balance: 0 });
  return _id;
}

const readBalance = async (_id: string): Promise<number | undefined> =>
  (await client.db().collection<Account>('accounts').findOne({ _id }))?.balance;

/**
 * The double has a process of PostgreSQL for each open transaction, and its start takes most of the time of a first
 * burst.
 */
async function warmUp(transactions: number): Promise<void> {
  const sessions = Array.from({ length: transactions }, () => client.startSession());
  await Promise.all(
    sessions.map((session) => {
      session.startTransaction();
      return client.db().collection('writes').insertOne({}, { session });
    }),
  );
  await Promise.all(sessions.map((session) => session.endSession()));
}

test('of 300 concurrent callbacks, of which 25 change one document, all are handled at the first attempt', async () => {
  const account = await openAccount();
  await warmUp(300);
  const receiver = transferCallbackReceiver({
    store,
    async onSuccess({ data }, { tx }) {
      await client.db().collection('writes').insertOne({ key: data.id }, { session: tx });
      if (data.externalId === account) await pay(account, tx);
    },
    onFailed: () => undefined,
    logger: false,
    // Warm, the double needs 10 s for all commands, beside ten busy processes on two cores.
    storeTimeoutMs: 9_000,
    leaseMs: 29_000,
    handlerTimeoutMs: 60_000,
  });
  const callbacks = Array.from({ length: 300 }, (_, index) =>
    transferSucceeded(index % 12 === 0 ? { externalId: account } : {}),
  );
  const outcomes = await Promise.all(callbacks.map((callback) => receiver.receive(callback)));
  expect([...new Set(outcomes.map(({ outcome }) => outcome))]).toEqual(['processed']);
  expect(await readBalance(account)).toBe(25);
  const ids = callbacks.map(({ data }) => data.id);
  expect(
    await client
      .db()
      .collection('writes')
      .countDocuments({ key: { $in: ids } }),
  ).toBe(300);
}, 300_000);

test('whoever takes over a lapsed lease ends the transaction before it, and what that has locked is free', async () => {
  const [account, key] = [await openAccount(), randomUUID()];
  const late = await hold(store, key, { leaseMs: 300 });
  await pay(account, late.tx);
  await expect.poll(async () => (await store.read(key)).state).toBe('free');
  const next = await hold(store, key, { token: 'two' });
  await pay(account, next.tx);
  await next.settle();
  expect(await readBalance(account)).toBe(1);
  await expect(late.settle()).rejects.toMatchObject({ code: 'LEASE_LOST' });
});

test('a claim that passes on before its transaction has begun settles nothing, and its writes are rolled back', async () => {
  const [account, key] = [await openAccount(), randomUUID()];
  const late = await hold(store, key, { leaseMs: 300 });
  await expect.poll(async () => (await store.read(key)).state).toBe('free');
  const next = await hold(store, key, { token: 'two' });
  await pay(account, late.tx);
  await expect(late.settle()).rejects.toMatchObject({ code: 'LEASE_LOST' });
  await next.settle();
  expect(await readBalance(account)).toBe(0);
});

test('a renewal after the first write of the handler does not keep its claim from being settled', async () => {
  const [account, key] = [await openAccount(), randomUUID()];
  const claim = await hold(store, key);
  await pay(account, claim.tx);
  expect(await claim.renew()).toBe(true);
  await claim.settle();
  expect(await readBalance(account)).toBe(1);
});

test('what a handler sends while its claim is being settled is refused', async () => {
  const [account, key] = [await openAccount(), randomUUID()];
  const claim = await hold(store, key);
  await pay(account, claim.tx);
  const settled = claim.settle();
  await expect(pay(account, claim.tx)).rejects.toThrow('expired');
  await settled;
  expect(await readBalance(account)).toBe(1);
});

test.each([
  ['the server never gets the first commits', 2, 'request'],
  ['the replies to all commits are lost', 4, 'reply'],
] as const)('a success is recorded although %s', async (_, times, lose) => {
  const proxy = await startLossyProxy(Number(new URL(server.url).port));
  proxy.lose(lose, 'commitTransaction', times);
  // The driver would go round the proxy to the address that the server says it has.
  const through = new MongoClient(`mongodb://127.0.0.1:${proxy.port}/test?directConnection=true`);
  onTestFinished(async () => {
    await through.close();
    await proxy.close();
  });
  const key = randomUUID();
  const claim = await hold(mongoStore(through), key);
  await through.db().collection('writes').insertOne({ key }, { session: claim.tx });
  await claim.settle();
  expect(proxy.lost()).toBe(times);
  expect((await store.read(key)).state).toBe('settled');
  expect(await client.db().collection('writes').countDocuments({ key })).toBe(1);
});

test('a callback takes six round trips beside those of its handler, and a copy takes one', async () => {
  const watched = new MongoClient(server.url, { monitorCommands: true });
  onTestFinished(() => watched.close());
  const key = randomUUID();
  const ofWatched = mongoStore(watched);
  await (await hold(ofWatched, randomUUID())).release();
  const sent: string[] = [];
  watched.on('commandStarted', ({ commandName }) => sent.push(commandName));
  const claim = await hold(ofWatched, key);
  await claim.settle();
  expect(sent.splice(0)).toEqual([
    ...['find', 'findAndModify', 'findAndModify'],
    ...['findAndModify', 'commitTransaction', 'delete'],
  ]);
  expect(await ofWatched.claim(key, request)).toMatchObject({ state: 'settled' });
  expect(sent).toEqual(['find']);
});

test('MongoDB deletes a lapsed lease only after the time in which the session in it may have to be ended', async () => {
  const watched = new MongoClient(server.url, { monitorCommands: true });
  onTestFinished(() => watched.close());
  const lifetimes: unknown[] = [];
  watched.on('commandStarted', ({ commandName, command }) => {
    if (commandName !== 'createIndexes') return;
    const { indexes } = command as { indexes: { expireAfterSeconds: number }[] };
    lifetimes.push(...indexes.map(({ expireAfterSeconds }) => expireAfterSeconds));
  });
  await mongoStore(watched, { collection: 'others' }).migrate();
  expect(lifetimes).toEqual([3_600, 3_600]);
});

test('a handler that meets a conflict begins anew under its claim, also if it has wrapped the error of the driver', async () => {
  const account = await openAccount();
  const [one, two] = [await hold(store, randomUUID()), await hold(store, randomUUID(), { token: 'two' })];
  await pay(account, one.tx);
  const cause: unknown = await pay(account, two.tx).catch((error: unknown) => error);
  const { tx } = two;
  const wrapped = new Error('no balance', { cause: new Error('no account', { cause }) });
  expect(await two.restart?.(wrapped)).toBe(true);
  await expect(pay(account, tx), 'the transaction before is over').rejects.toThrow('expired');
  await one.settle();
  await pay(account, two.tx);
  await two.settle();
  expect(await readBalance(account)).toBe(2);
});

test('a settle that is repeated after a conflict records no success without its writes', async () => {
  const [account, key] = [await openAccount(), randomUUID()];
  const [one, two] = [await hold(store, randomUUID()), await hold(store, key)];
  await pay(account, one.tx);
  await expect(pay(account, two.tx)).rejects.toThrow();
  await expect(two.settle()).rejects.toThrow();
  await expect(two.settle()).rejects.toThrow('has ended its transaction');
  expect((await store.read(key)).state).toBe('claimed');
  await Promise.all([one.release(), two.release()]);
});

test('a handler begins anew neither for another error, nor once its claim has passed to another delivery', async () => {
  const [account, key] = [await openAccount(), randomUUID()];
  const late = await hold(store, key, { leaseMs: 300 });
  expect(await late.restart?.(new Error('no balance'))).toBe(false);
  const other = await hold(store, randomUUID());
  await pay(account, other.tx);
  const conflict: unknown = await pay(account, late.tx).catch((error: unknown) => error);
  await expect.poll(async () => (await store.read(key)).state).toBe('free');
  await hold(store, key, { token: 'two' });
  expect(await late.restart?.(conflict)).toBe(false);
  await other.release();
});

test('tx refuses what would end its transaction, which is committed all the same', async () => {
  const account = await openAccount();
  const claim = await hold(store, randomUUID());
  const { tx } = claim;
  await pay(account, tx);
  for (const control of [
    () => tx.commitTransaction(),
    () => tx.abortTransaction(),
    () => tx.endSession(),
    () => tx.withTransaction(() => Promise.resolve()),
    () => {
      tx.startTransaction();
    },
  ]) {
    expect(control).toThrow(expect.objectContaining({ code: 'TRANSACTION_CONTROL' }));
  }
  await claim.settle();
  expect(await readBalance(account)).toBe(1);
});

test('the driver 6 serves as well, with names of its own for the database and the collection', async () => {
  const client6 = new MongoClient6(server.url);
  onTestFinished(() => client6.close());
  const store6 = mongoStore(client6, { db: 'payouts', collection: 'callbacks' });
  await store6.migrate();
  await client6.db('payouts').createCollection('paid');
  const [kept, undone] = [await hold(store6, 'a'), await hold(store6, 'b')];
  for (const { tx } of [kept, undone]) await client6.db('payouts').collection('paid').insertOne({}, { session: tx });
  await kept.settle();
  await undone.release();
  expect(await client6.db('payouts').collection('paid').countDocuments({})).toBe(1);
  expect(await client6.db('payouts').collection('callbacks').countDocuments({})).toBe(1);
});

test('a standalone server is refused by check and by a claim, because it has no transactions', async () => {
  const standalone = await startMongo({ isStandalone: true });
  const alone = new MongoClient(standalone.url);
  onTestFinished(async () => {
    await alone.close();
    await standalone.stop();
  });
  const handlers = { onSuccess: () => undefined, onFailed: () => undefined };
  const receiver = transferCallbackReceiver({ store: mongoStore(alone), ...handlers, logger: false });
  const refused = { error: { code: 'NO_TRANSACTIONS' } };
  expect(await receiver.check()).toMatchObject({ ok: false, ...refused });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'store_unavailable', ...refused });
});

test('check commits a claim, and leaves nothing behind', async () => {
  const watched = new MongoClient(server.url, { monitorCommands: true });
  onTestFinished(() => watched.close());
  const commands: string[] = [];
  watched.on('commandSucceeded', ({ commandName }) => commands.push(commandName));
  const checked = mongoStore(watched, { db: 'checked' });
  await checked.migrate();
  const handlers = { onSuccess: () => undefined, onFailed: () => undefined };
  const receiver = transferCallbackReceiver({ store: checked, ...handlers, logger: false });
  expect(await receiver.check()).toMatchObject({ ok: true });
  expect(commands.filter((name) => name === 'commitTransaction')).toHaveLength(1);
  for (const name of ['transfer_callbacks', 'transfer_callbacks_leases']) {
    expect(await watched.db('checked').collection(name).countDocuments({})).toBe(0);
  }
});
