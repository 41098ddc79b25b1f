import { startDocumentDb, toUrl } from './documentdb.js';
import { startGateway } from './mongo-gateway.js';

/** What serves MongoDB's driver in the tests. It is not MongoDB. */
export interface MongoDouble {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts DocumentDB behind a gateway. */
export async function startMongo(): Promise<MongoDouble> {
  const server = await startDocumentDb();
  const gateway = await startGateway(toUrl(server));
  return {
    url: `mongodb://127.0.0.1:${gateway.port}/test?replicaSet=rs0`,
    async stop() {
      await gateway.close();
      await server.stop();
    },
  };
}
