/** A merchant's app as a separate process, whose handlers book each transfer in MongoDB. See ledger.test.ts. */
import { MongoClient } from 'mongodb';
import { mongoStore } from 'transfer-callbacks';
import { serveLedger } from '../support/programs/ledger-handlers.js';
import { toTransaction } from './transaction.js';
import { readAppOptions } from '../support/programs/app.js';

const { url, port } = readAppOptions() as { url: string; port: number };
const client = new MongoClient(url, { serverSelectionTimeoutMS: 1_000 });
await serveLedger({ store: mongoStore(client), transaction: toTransaction(client), port, undoesLaterWrites: true });
