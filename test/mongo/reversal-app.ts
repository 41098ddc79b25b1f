/** A merchant's app as a separate process, whose service takes successes back. See reversal-race.test.ts. */
import { MongoClient } from 'mongodb';
import { mongoStore } from 'transfer-callbacks';
import { readAppOptions } from '../support/programs/app.js';
import { serveReversals } from '../support/programs/reversals.js';
import { toTransaction } from './transaction.js';

const { url, port } = readAppOptions() as { url: string; port: number };
const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_000 });
await serveReversals({ store: mongoStore(client), write: toTransaction(client).write, port });
