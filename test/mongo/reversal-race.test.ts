import { MongoClient } from 'mongodb';
import { mongoStore } from 'transfer-callbacks';
import { expect, onTestFinished, test } from 'vitest';
import { successOf, transfersOr } from '../support/helpers/reversal-race.js';
import { forkApp } from '../support/programs/child.js';
import { raceProcesses } from '../support/programs/reversals.js';
import { startMongo } from './servers.js';
import { createCollections, toTransaction } from './transaction.js';

const count = transfersOr(100);

test.each([
  ['processes are killed', false],
  ['processes are killed and the records of successes end', true],
])(
  'on two processes with MongoDB the money of each transfer is given back once while %s',
  async (what, ends) => {
    const server = await startMongo();
    const client = new MongoClient(server.url);
    onTestFinished(async () => {
      await client.close();
      await server.stop();
    });
    const store = mongoStore(client);
    await store.migrate();
    await createCollections(client);
    const { count: countBooked } = toTransaction(client);
    const wrong = await raceProcesses({
      title: `MongoDB: ${what}`,
      count,
      fork: (port) => forkApp('../../mongo/reversal-app.ts', { url: server.url, port }),
      kills: true,
      disturb: ends ? (id) => store.forget(id, successOf(id)).catch(() => false) : undefined,
      countBookings: (status, id) => countBooked(`${status} ${id}`),
      mayPayAgain: ends,
    });
    expect(wrong).toEqual([]);
  },
  120_000 + 2_000 * count,
);
