import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Pool, type PoolClient, type PoolConfig } from 'pg';
import {
  pgStore,
  transferCallbackReceiver,
  type ReceiverOptions,
  type TransferCallback,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { pgTransaction } from '../helpers/transactions.js';
import { startLossyProxy, type LossyProxy } from './lossy-proxy.js';
import { findPrograms, prepare, type PostgresMajor } from './postgres-programs.js';
import { makeFolder, startServer, unprivileged, type Server } from './server.js';
import type { SqlStoreOptions } from '../../../src/stores/sql/options.js';

export { majors } from './postgres-programs.js';

const run = promisify(execFile);

export interface PostgresServer extends Server {
  readonly url: string;
  /** Makes a pool. `stop` ends it. */
  pool(config?: PoolConfig): Pool;
}

/** Starts a PostgreSQL on a free port of the loopback. */
export async function startPostgres(major: PostgresMajor = 18): Promise<PostgresServer> {
  const server = await launch(findPrograms(major));
  const url = `postgres://postgres@127.0.0.1:${server.port}/postgres`;
  const pools: Pool[] = [];
  const clients = new Set<PoolClient>();
  return {
    ...server,
    url,
    pool(config = {}) {
      const pool = new Pool({ connectionString: url, ...config });
      pool.on('error', () => undefined); // An idle connection that a restart has broken.
      pool.on('connect', (client) => clients.add(client));
      pools.push(pool);
      return pool;
    },
    async stop() {
      // A client that a test has not released would emit `error` without a listener when the server ends.
      for (const client of clients) client.on('error', () => undefined);
      for (const pool of pools) void pool.end();
      await server.stop();
    },
  };
}

/** Creates the data and starts a server on it. It accepts every password. */
async function launch(programs: string): Promise<Server> {
  const user = unprivileged();
  const folder = await makeFolder(user);
  const bin = join(await prepare(programs, folder), 'bin');
  const settings = ['fsync=off', 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=200'];
  return startOnNewData({ initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') }, folder, user, settings);
}

/** Creates data in the folder with `initdb`, and starts `postgres` on it, which may be of another installation. */
export async function startOnNewData(
  { initdb, postgres }: { initdb: string; postgres: string },
  folder: string,
  user: ReturnType<typeof unprivileged>,
  settings: readonly string[],
): Promise<Server> {
  const data = join(folder, 'data');
  const options = ['-D', data, '--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await run(initdb, options, { cwd: folder, ...user });
  return startServer({
    path: postgres,
    folder,
    args: (port) => ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])],
    ready: 'ready to accept connections',
    stopSignal: 'SIGINT',
    crashSignal: 'SIGQUIT',
    user,
  });
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
  await pgStore(pool).migrate();
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

/** Creates the tables that the checks of `storeContract` write to. */
export async function contractTransaction(pool: Pool): Promise<ReturnType<typeof pgTransaction>> {
  await pool.query(
    'CREATE TABLE contract_writes (key text); CREATE INDEX ON contract_writes (key); CREATE TABLE contract_locks (name text PRIMARY KEY)',
  );
  return pgTransaction(pool);
}

/** A pool of one client that reaches the server through a network which can be broken. */
export async function poolBehindProxy(server: PostgresServer): Promise<{ own: Pool; proxy: LossyProxy }> {
  const url = new URL(server.url);
  const proxy = await startLossyProxy(Number(url.port));
  url.port = String(proxy.port);
  return { own: server.pool({ connectionString: url.href, max: 1, connectionTimeoutMillis: 2_000 }), proxy };
}

/** A pool of a role that has these rights to the tables of `startLedger`, and may create none. */
export async function poolOfRole(server: PostgresServer, rights: string): Promise<Pool> {
  const role = `role_${randomUUID().slice(0, 8)}`;
  await server.pool().query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    GRANT ${rights} ON transfer_callbacks, ledger TO ${role}`);
  const url = new URL(server.url);
  url.username = role;
  url.password = 'x';
  return server.pool({ connectionString: url.href });
}

/** A receiver whose handlers `book`, except for what `options` say. */
export function receiverOn(
  pool: Pool,
  options: Partial<ReceiverOptions<TransferCallback, PoolClient>> = {},
  storeOptions: SqlStoreOptions = {},
): TransferCallbackReceiver<TransferCallback, PoolClient> {
  return transferCallbackReceiver({
    store: pgStore(pool, storeOptions),
    onSuccess: book,
    onFailed: book,
    logger: false,
    ...options,
  });
}
