import { MongoClient, type ClientSession } from 'mongodb';
import { MongoClient as MongoClient6 } from 'mongodb6';
import { mongoStore, type MongoStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { createTransaction, startMongo, type MongoServer } from './servers.js';

let server: MongoServer;
let client: MongoClient;
let client6: MongoClient6;
let store: MongoStore<ClientSession>;
let other: MongoStore<ClientSession>;
let transaction: StoreTransaction<ClientSession>;

beforeAll(async () => {
  server = await startMongo();
  client = new MongoClient(server.url);
  client6 = new MongoClient6(server.url);
  store = mongoStore(client);
  other = mongoStore(new MongoClient(server.url));
  await store.migrate();
  transaction = await createTransaction(client);
});
afterAll(async () => {
  await Promise.all([client.close(), client6.close()]);
  await server.stop();
});

describe('the contract holds', () => {
  for (const { title, check } of storeContract) {
    test(`${title}, with one client`, () => check(store, { transaction }));
    test(`${title}, with two clients`, () => check(store, { other, transaction }));
  }
});
