import { createRequire } from 'node:module';
import {
  postgresStore,
  type PgClient,
  type PgPool,
  type PostgresStore,
  type PostgresStoreOptions,
} from '../stores/postgres.js';
import { UsageError } from './arguments.js';

/** A store, and what closes its connection. */
export interface OpenStore {
  readonly store: Pick<PostgresStore<PgClient>, 'read'>;
  readonly close: () => unknown;
}

/** How long connecting may take, and each command. */
export const driverTimeoutMs = 5_000;

/** What is used of pg. */
interface PgDriver {
  Pool: new (config: object) => PgPool & { end(): Promise<void> };
}

/** Returns what connects to PostgreSQL with the app's pg. Throws UsageError if the app has none, or the options are wrong. */
export function openPostgres(url: string, options: PostgresStoreOptions): () => Promise<OpenStore> {
  const { Pool } = loadDriver(['pg']).driver as PgDriver;
  const pool = new Pool({
    connectionString: url,
    application_name: 'transfer-callbacks',
    max: 1,
    connectionTimeoutMillis: driverTimeoutMs,
    query_timeout: driverTimeoutMs,
  });
  const store = postgresStore(pool, options);
  return () => Promise.resolve({ store, close: () => pool.end() });
}

/** Loads the first of these packages that the app in the working directory has. Throws UsageError. */
export function loadDriver(names: readonly [string, ...string[]]): { name: string; driver: unknown } {
  const directory = process.cwd();
  const requireFromApp = createRequire(`${directory}/`);
  const name = names.find((each) => {
    try {
      return requireFromApp.resolve(each) !== '';
    } catch {
      return false;
    }
  });
  if (name !== undefined) return { name, driver: requireFromApp(name) };
  throw new UsageError(`Expected ${names.join(', ')} to be installed in ${directory}: run this in your app's folder.`);
}
