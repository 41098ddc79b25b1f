import { MongoClient } from 'mongodb';
import { mongoStore } from 'transfer-callbacks';
import { onTestFinished, test } from 'vitest';
import { forkApp } from '../support/programs/child.js';
import { keepLedger } from '../support/programs/ledger.js';
import { startMongo } from './servers.js';
import { createCollections, toTransaction } from './transaction.js';

/** As in test/faults/ledger.test.ts. */
const count = Number(process.env.LEDGER_CALLBACKS ?? 1_500);

test(
  'on mongoStore the ledger has exactly one row for each transfer and each event of onOther, whatever their handlers do wrong',
  async () => {
    const server = await startMongo();
    const client = new MongoClient(server.url);
    onTestFinished(async () => {
      await client.close();
      await server.stop();
    });
    const store = mongoStore(client);
    await store.migrate();
    await createCollections(client);
    await keepLedger({
      count,
      fork: (port) => forkApp('../../mongo/ledger-app.ts', { url: server.url, port }),
      async restart() {
        await server.kill();
        await server.restart();
      },
      store,
      transaction: toTransaction(client),
    });
  },
  120_000 + 200 * count,
);
