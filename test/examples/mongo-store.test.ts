import { randomUUID } from 'node:crypto';
import { MongoClient, type ClientSession, type Db } from 'mongodb';
import { storeContract, transferSucceeded, type StoreTransaction } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { receiverOf } from '../core/support.js';
import { mongoStore, type MongoStore } from '../../examples/mongo-store.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { claimFree } from '../stores/support.js';
import { startMongo, type MongoDouble } from '../support/servers/mongo.js';
import { run } from './support.js';

interface Account {
  _id: string;
  balance: number;
}

let server: MongoDouble;
let client: MongoClient;
let store: MongoStore;
const clients: MongoClient[] = [];

beforeAll(async () => {
  server = await startMongo();
  client = connect();
  store = mongoStore(client);
  await store.migrate();
  // A transaction that creates a collection would meet others that do.
  for (const name of ['writes', 'locks', 'accounts']) await client.db().createCollection(name);
});
afterAll(async () => {
  await Promise.all(clients.map((each) => each.close()));
  await server.stop();
});

function connect(url = server.url): MongoClient {
  const made = new MongoClient(url);
  clients.push(made);
  return made;
}

const accounts = () => client.db().collection<Account>('accounts');

const pay = (_id: string, session: ClientSession) =>
  accounts().updateOne({ _id }, { $inc: { balance: 1 } }, { session });

async function openAccount(): Promise<string> {
  const _id = randomUUID();
  await accounts().insertOne({ _id, balance: 0 });
  return _id;
}

const readBalance = async (_id: string) => (await accounts().findOne({ _id }))?.balance;

/** The driver refuses another client than that of the session, which its types do not show. */
const databaseOf = (session: ClientSession): Db => (session as unknown as { client: MongoClient }).client.db();

const transaction: StoreTransaction<ClientSession> = {
  write: (session, key) => databaseOf(session).collection('writes').insertOne({ key }, { session }),
  count: (key) => client.db().collection('writes').countDocuments({ key }, { readConcern: 'majority' }),
  fail: (session) =>
    databaseOf(session)
      .collection('writes')
      .updateOne({ key: 'none' }, { $unknown: { key: 1 } }, { session }),
  rollback: (session) => session.abortTransaction(),
  lock: (session, _id) => databaseOf(session).collection<{ _id: string }>('locks').insertOne({ _id }, { session }),
};

describe('the store contract, through two clients', () => {
  test.each(storeContract)('$title', ({ check }) => check(store, { transaction, other: mongoStore(connect()) }));
});

describe('mongo-store.ts', () => {
  test('a claim that takes over a lapsed lease ends the transaction before it, and what that has locked is free', async () => {
    const [account, key] = [await openAccount(), randomUUID()];
    const late = await claimFree(store, { leaseMs: 300 }, key);
    await pay(account, late.tx);
    await expect.poll(async () => (await store.read?.(key))?.state).toBe('free');
    const next = await claimFree(store, { token: 'two' }, key);
    await pay(account, next.tx);
    await next.settle();
    expect(await readBalance(account)).toBe(1);
    await expect(late.settle()).rejects.toThrow('passed to another delivery');
  });

  test('a renewal after the first write of the handler does not keep its claim from being handled', async () => {
    const [account, key] = [await openAccount(), randomUUID()];
    const claim = await claimFree(store, {}, key);
    await pay(account, claim.tx);
    expect(await claim.renew()).toBe(true);
    await claim.settle();
    expect(await readBalance(account)).toBe(1);
  });

  test('what a handler sends while its claim is being handled is refused', async () => {
    const [account, key] = [await openAccount(), randomUUID()];
    const claim = await claimFree(store, {}, key);
    await pay(account, claim.tx);
    const handled = claim.settle();
    await expect(pay(account, claim.tx)).rejects.toThrow('expired');
    await handled;
    expect(await readBalance(account)).toBe(1);
  });

  test.each([
    ['the server never gets the first commits', 2, 'request'],
    ['the replies to all commits are lost', 4, 'reply'],
  ] as const)('a success is recorded although %s', async (_, times, lose) => {
    const proxy = await startLossyProxy(Number(new URL(server.url).port));
    onTestFinished(() => proxy.close());
    proxy.lose(lose, 'commitTransaction', times);
    // The driver would go round the proxy to the address that the server says it has.
    const through = connect(`mongodb://127.0.0.1:${proxy.port}/test?directConnection=true`);
    const key = randomUUID();
    const claim = await claimFree(mongoStore(through), {}, key);
    await transaction.write(claim.tx, key);
    await claim.settle();
    expect(proxy.lost()).toBe(times);
    expect((await store.read?.(key))?.state).toBe('handled');
    expect(await transaction.count(key)).toBe(1);
  });

  test('a handler that changes a hot document gets 500, keeps nothing, and is run again by the next attempt', async () => {
    const account = await openAccount();
    const receiver = receiverOf({
      store,
      async onSuccess({ data }, { tx }) {
        await transaction.write(tx, data.id);
        await pay(account, tx);
      },
    });
    const first = await claimFree(store);
    await pay(account, first.tx);
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'handler_failed',
      error: { errorLabels: ['TransientTransactionError'] },
    });
    await first.settle();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
    expect([await readBalance(account), await transaction.count(callback.data.id)]).toEqual([2, 1]);
  });

  test('a settle that is repeated after a conflict records no success without its writes', async () => {
    const [account, key] = [await openAccount(), randomUUID()];
    const [one, two] = [await claimFree(store), await claimFree(store, {}, key)];
    await pay(account, one.tx);
    await expect(pay(account, two.tx)).rejects.toThrow();
    await expect(two.settle()).rejects.toThrow();
    await expect(two.settle()).rejects.toThrow('has ended its transaction');
    expect((await store.read?.(key))?.state).toBe('claimed');
    await Promise.all([one.release(), two.release()]);
  });

  test('tx refuses what would end its transaction, which is committed all the same', async () => {
    const account = await openAccount();
    const claim = await claimFree(store);
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
      expect(control).toThrow('return to commit, throw to roll back');
    }
    await claim.settle();
    expect(await readBalance(account)).toBe(1);
  });

  test('the example adds up a callback that comes twice once', async () => {
    const { exitCode, output } = run('mongo-store.ts', { MONGODB_URL: server.url });
    expect(await exitCode).toBe(0);
    expect(output()).toBe('The first delivery: processed\nThe second delivery: duplicate\nPaid in all: 15000 XAF\n');
  });
});
