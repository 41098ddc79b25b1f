/** A merchant's app as a separate process, whose handlers book each transfer through mysql2. See ledger.test.ts. */
import { createPool } from 'mysql2/promise';
import { mysqlStore } from 'transfer-callbacks';
import { serveLedger } from './ledger-handlers.js';
import { mysqlTransaction } from '../helpers/mysql-transaction.js';
import { readAppOptions } from './app.js';

const { url, port } = readAppOptions() as { url: string; port: number };
const pool = createPool({ uri: url, connectionLimit: 16 });
await serveLedger({ store: mysqlStore(pool), transaction: mysqlTransaction(pool), port, undoesLaterWrites: true });
