import { MongoClient, type ClientSession } from 'mongodb';
import { mongoStore, type MongoStore } from 'transfer-callbacks';
import { storeContract, type StoreTransaction } from 'transfer-callbacks/testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { startMongo, type MongoServer } from './servers.js';
import { createCollections, toTransaction } from './transaction.js';

let server: MongoServer;
let clients: [MongoClient, MongoClient];
let store: MongoStore<ClientSession>;
let other: MongoStore<ClientSession>;
let transaction: StoreTransaction<ClientSession>;

beforeAll(async () => {
  server = await startMongo();
  clients = [new MongoClient(server.url), new MongoClient(server.url)];
  [store, other] = [mongoStore(clients[0]), mongoStore(clients[1])];
  await store.migrate();
  await createCollections(clients[0]);
  transaction = toTransaction(clients[0]);
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await server.stop();
});

describe.each(['one client', 'two clients'])('the contract holds through %s', (through) => {
  for (const { title, check } of storeContract) {
    test(title, () => check(store, through === 'one client' ? { transaction } : { other, transaction }));
  }
});
