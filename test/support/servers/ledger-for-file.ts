import { beforeAll } from 'vitest';
import { startLedger, type Ledger } from './postgres.js';

/** Starts a PostgreSQL with a ledger before the first test of the file, and stops it after the last. */
export function startLedgerForFile(options: { max: number }): Ledger {
  const own = {} as Ledger;
  beforeAll(async () => {
    Object.assign(own, await startLedger(options));
    return () => own.server.stop();
  });
  return own;
}
