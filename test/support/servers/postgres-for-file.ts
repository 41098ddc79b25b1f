import { beforeAll } from 'vitest';
import { startLedger, startPostgres, type Ledger, type PostgresServer } from './postgres.js';

/** Starts a PostgreSQL before the first test of the file, with what `prepare` does, and stops it after the last. */
export function startPostgresForFile(prepare?: (server: PostgresServer) => Promise<unknown>): PostgresServer {
  const own = {} as PostgresServer;
  beforeAll(async () => {
    Object.assign(own, await startPostgres());
    await prepare?.(own);
    return () => own.stop();
  });
  return own;
}

/** Starts a PostgreSQL with a ledger in the same way. */
export function startLedgerForFile(options: { max: number }): Ledger {
  const own = {} as Ledger;
  beforeAll(async () => {
    Object.assign(own, await startLedger(options));
    return () => own.server.stop();
  });
  return own;
}
