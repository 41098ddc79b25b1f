import { MongoClient, type ClientSession, type Db } from 'mongodb';
import type { StoreTransaction } from 'transfer-callbacks/testing';
import { makeFolder, startServer, type Server } from '../support/server.js';
import { startDocumentDb, toUrl } from './documentdb.js';
import { startGateway } from './gateway.js';

/** MongoDB, or what serves its driver here. */
export interface MongoServer extends Pick<Server, 'kill' | 'restart' | 'stop'> {
  readonly url: string;
}

/** Starts the MongoDB of `MONGOD_BIN`, or else DocumentDB behind a gateway. */
export function startMongo(): Promise<MongoServer> {
  const { MONGOD_BIN } = process.env;
  return MONGOD_BIN ? startMongod(MONGOD_BIN) : startDouble();
}

async function startMongod(path: string): Promise<MongoServer> {
  const folder = await makeFolder();
  const server = await startServer({
    path,
    folder,
    args: (port) => ['--dbpath', folder, '--port', String(port), '--bind_ip', '127.0.0.1', '--replSet', 'rs0'],
    ready: 'Waiting for connections',
    stopSignal: 'SIGTERM',
  });
  const host = `127.0.0.1:${server.port}`;
  const client = new MongoClient(`mongodb://${host}/?directConnection=true`);
  await client.db('admin').command({ replSetInitiate: { _id: 'rs0', members: [{ _id: 0, host }] } });
  await client.close();
  return { ...server, url: `mongodb://${host}/test?replicaSet=rs0` };
}

async function startDouble(): Promise<MongoServer> {
  const server = await startDocumentDb();
  const gateway = await startGateway(toUrl(server));
  return {
    ...server,
    url: `mongodb://127.0.0.1:${gateway.port}/test?replicaSet=rs0`,
    async stop() {
      await gateway.close();
      await server.stop();
    },
  };
}

interface Row {
  _id: string;
}

/** The types of the driver do not show the client of a session. */
function databaseOf(session: ClientSession): Db {
  return (session as unknown as { client: MongoClient }).client.db();
}

/** What handlers write, with the client of their session: another one is refused by the driver. */
export async function createTransaction(client: MongoClient): Promise<Required<StoreTransaction<ClientSession>>> {
  // A transaction that creates a collection would meet others that do.
  await client.db().createCollection('writes');
  await client.db().createCollection('locks');
  return {
    write: (session, key) => databaseOf(session).collection('writes').insertOne({ key }, { session }),
    count: (key) => client.db().collection('writes').countDocuments({ key }, { readConcern: 'majority' }),
    fail: (session) =>
      databaseOf(session)
        .collection('writes')
        .updateOne({ key: 'none' }, { $unknown: { key: 1 } }, { session }),
    rollback: (session) => session.abortTransaction(),
    lock: (session, _id) => databaseOf(session).collection<Row>('locks').insertOne({ _id }, { session }),
  };
}
