import { MongoClient, type Document } from 'mongodb';
import { makeFolder, startServer, type Server } from '../support/servers/server.js';
import { startDocumentDb, toUrl } from './documentdb.js';
import { startGateway } from './gateway.js';

/** MongoDB, or what serves its driver here. */
export interface MongoServer extends Pick<Server, 'kill' | 'restart' | 'stop'> {
  readonly url: string;
}

/**
 * Starts the MongoDB of `MONGOD_BIN`, or else DocumentDB behind a gateway. A standalone server is in no replica set.
 */
export function startMongo({ isStandalone = false } = {}): Promise<MongoServer> {
  const { MONGOD_BIN } = process.env;
  return MONGOD_BIN ? startMongod(MONGOD_BIN, isStandalone) : startDouble(isStandalone);
}

async function startMongod(path: string, isStandalone: boolean): Promise<MongoServer> {
  const folder = await makeFolder();
  const replicaSet = isStandalone ? [] : ['--replSet', 'rs0'];
  const server = await startServer({
    path,
    folder,
    args: (port) => ['--dbpath', folder, '--port', String(port), '--bind_ip', '127.0.0.1', ...replicaSet],
    ready: 'Waiting for connections',
    stopSignal: 'SIGTERM',
  });
  const host = `127.0.0.1:${server.port}`;
  if (isStandalone) return { ...server, url: `mongodb://${host}/test` };
  const url = `mongodb://${host}/test?replicaSet=rs0`;
  const initiate = { replSetInitiate: { _id: 'rs0', members: [{ _id: 0, host }] } };
  await command(`mongodb://${host}/admin?directConnection=true`, initiate);
  // The driver waits for the primary, which is elected a moment later.
  await command(url, { ping: 1 });
  return { ...server, url };
}

async function command(url: string, document: Document): Promise<void> {
  const client = new MongoClient(url);
  await client.db().command(document);
  await client.close();
}

async function startDouble(isStandalone: boolean): Promise<MongoServer> {
  const server = await startDocumentDb();
  const gateway = await startGateway(toUrl(server), isStandalone);
  return {
    ...server,
    url: `mongodb://127.0.0.1:${gateway.port}/test${isStandalone ? '' : '?replicaSet=rs0'}`,
    async stop() {
      await gateway.close();
      await server.stop();
    },
  };
}
