import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from './postgres.js';
import { findNeeded } from './programs.js';
import { makeFolder, startServer, unprivileged } from './server.js';

export const findPgBouncer = () =>
  findNeeded({
    what: 'a pgbouncer on the PATH or in PGBOUNCER_BIN',
    howToGetIt: '`apt install pgbouncer` on Debian, `brew install pgbouncer` on macOS, `apk add pgbouncer` on Alpine.',
    variable: 'PGBOUNCER_BIN',
    names: ['pgbouncer'],
    debian: {
      name: 'pgbouncer',
      path: 'usr/sbin/pgbouncer',
      package: 'pgbouncer',
      without: ['debconf', 'init-system-helpers', 'lsb-base', 'postgresql-common'],
      megabytes: 3,
    },
  });

/**
 * Starts a PgBouncer in front of a PostgreSQL. It lends each transaction one of its connections, and takes it back when
 * the transaction ends.
 */
export async function startPgBouncer(postgres: PostgresServer, { connections = 10 }: { connections?: number } = {}) {
  const path = await findPgBouncer();
  const user = unprivileged();
  const folder = await makeFolder(user);
  const file = join(folder, 'pgbouncer.ini');
  const server = await startServer({
    path,
    folder,
    args(port) {
      // It takes the port from its file only.
      writeFileSync(file, configure(port, postgres.port, connections));
      return [...(user === undefined ? [] : ['--user=nobody']), file];
    },
    ready: 'process up',
    stopSignal: 'SIGTERM',
  });
  return { ...server, url: `postgres://postgres@127.0.0.1:${server.port}/postgres` };
}

const configure = (port: number, postgresPort: number, connections: number): string => `[databases]
* = host=127.0.0.1 port=${postgresPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 1000
`;
