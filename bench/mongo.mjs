// Callbacks through mongoStore, beside the same transaction by hand. README.md tells how it is measured.
import { MongoClient } from 'mongodb';
import { startMongo } from '../test/mongo/servers.ts';
import { packageUnderTest } from './package.mjs';
import { concurrent, measure, print } from './support/stores.mjs';

const [rounds, callbacks] = [5, 600];

/** Resolves with a MongoDB itself: the double of the tests says nothing about speed. */
async function findMongo() {
  const { MONGODB_URL, MONGOD_BIN } = process.env;
  if (MONGODB_URL) return { url: MONGODB_URL, stop: () => undefined };
  if (MONGOD_BIN) return startMongo();
  throw new Error('It runs only on MongoDB itself: name a mongod in MONGOD_BIN, or a replica set in MONGODB_URL.');
}

const server = await findMongo();
const client = new MongoClient(server.url, { maxPoolSize: concurrent });
// MONGODB_URL may lead to a server with other data.
const db = client.db(`transfer_callbacks_bench_${process.pid}`);
const [booked, recorded] = [await db.createCollection('booked'), await db.createCollection('recorded')];
const insert = { $setOnInsert: { fingerprint: 'f' } };
const parts = {
  store: packageUnderTest.mongoStore(client, { db: db.databaseName }),
  book: (session, _id) => booked.updateOne({ _id }, { $inc: { times: 1 } }, { session }),
  byHand: (_id, book) =>
    client.withSession((session) =>
      session.withTransaction(async () => {
        const { upsertedCount } = await recorded.updateOne({ _id }, insert, { upsert: true, session });
        if (upsertedCount === 1) await book(session, _id);
      }),
    ),
};
try {
  const { version } = await db.command({ buildInfo: 1 });
  console.log(`Node ${process.version}, MongoDB ${version}, medians of ${rounds} rounds of ${callbacks} callbacks`);
  print('mongodb', await measure(parts, { rounds, callbacks }));
} finally {
  await db.dropDatabase();
  await client.close();
  await server.stop();
}
