import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pgStore } from 'transfer-callbacks';
import { startPostgres } from '../support/servers/postgres.js';
import type { Host } from './host.js';
import { findProgram, findVersion, hostsFolder, withTsx } from './programs.js';

const here = fileURLToPath(new URL('.', import.meta.url));
const versionOf = 'node_modules/@cloudflare/workerd-linux-64';

const workerd = (): string =>
  findProgram('workerd', {
    'darwin-arm64': 'node_modules/@cloudflare/workerd-darwin-arm64/bin/workerd',
    'darwin-x64': 'node_modules/@cloudflare/workerd-darwin-64/bin/workerd',
    'linux-arm64': 'node_modules/@cloudflare/workerd-linux-arm64/bin/workerd',
    'linux-x64': 'node_modules/@cloudflare/workerd-linux-64/bin/workerd',
  });

/** The oldest date at which a Worker with the package starts, and that of this workerd. */
export const workerDates = [
  '2025-09-15',
  findVersion(versionOf).replace(/^1\.(\d{4})(\d\d)(\d\d)\..*$/, '$1-$2-$3'),
] as const;

/** Makes the host of a Worker, which is in this file, as Cloudflare runs it at a `compatibility_date`. */
export function workerHost(file: string, date: string): Host {
  const bundle = join(hostsFolder, 'node_modules/.workers', `${basename(file, '.ts')}-${date}.mjs`);
  return {
    name: 'Cloudflare Workers in workerd',
    file,
    versionOf,
    startServers: startDatabase,
    build: () => withTsx(join(here, 'build-worker.ts'), file, bundle, date),
    command: (port) => [workerd(), 'serve', `${bundle}.capnp`, '--socket-addr', `http=127.0.0.1:${port}`],
  };
}

/** Starts a PostgreSQL whose table is there, and refuses one id as a store that is down. */
async function startDatabase() {
  const server = await startPostgres();
  const pool = server.pool();
  await pgStore(pool).migrate();
  await pool.query("ALTER TABLE transfer_callbacks ADD CHECK (id <> 'store-down')");
  return { env: { DATABASE_URL: server.url }, stop: () => server.stop() };
}
