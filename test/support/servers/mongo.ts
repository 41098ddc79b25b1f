import { readdir, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Client } from 'pg';
import { findPrograms, prepare } from './postgres-programs.js';
import { startOnNewData } from './postgres.js';
import { findNeeded, type DebianProgram } from './programs.js';
import { makeFolder, unprivileged } from './server.js';
import { startGateway } from './mongo-gateway.js';

/** The engine of DocumentDB, an extension of PostgreSQL. Only Debian sid has it. */
const debianDocumentDb: DebianProgram = {
  name: 'documentdb',
  path: 'usr/lib/postgresql/18/bin/postgres',
  package: 'postgresql-18-documentdb',
  // What serves an installation, and the libraries of PostGIS for images and solids.
  without: [
    ...['debconf', 'locales', 'openssl', 'perl', 'perl-base', 'postgresql-common', 'procps', 'ssl-cert', 'systemd'],
    ...['tzdata', 'libgdal39', 'libsfcgal2', 'proj-data'],
  ],
  release: 'sid',
  megabytes: 51,
};

const settings = [
  'fsync=off',
  'listen_addresses=127.0.0.1',
  'unix_socket_directories=',
  'max_connections=800',
  'shared_preload_libraries=pg_cron,pg_documentdb_core,pg_documentdb',
  // Nothing is to run by itself.
  'cron.launch_active_jobs=off',
];

/** What serves MongoDB's driver in the tests. It is not MongoDB. */
export interface MongoDouble {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a PostgreSQL with the extension behind a gateway, on free ports of the loopback. */
export async function startMongo(): Promise<MongoDouble> {
  const what = 'the DocumentDB of Debian sid';
  const howToGetIt = 'run them on Debian, or on Ubuntu with `apt install debian-archive-keyring`.';
  const path = await findNeeded({ what, howToGetIt, debian: debianDocumentDb });
  await createLinks(dirname(path));
  const user = unprivileged();
  const folder = await makeFolder(user);
  // The initdb of Debian would start its server without the libraries that were unpacked.
  const initdb = join(await prepare(findPrograms(18), folder), 'bin/initdb');
  const server = await startOnNewData({ initdb, postgres: path }, folder, user, settings);
  const url = `postgres://postgres@127.0.0.1:${server.port}/postgres`;
  const client = new Client(url);
  await client.connect();
  await client.query('CREATE EXTENSION documentdb CASCADE');
  await client.end();
  const gateway = await startGateway(url);
  return {
    url: `mongodb://127.0.0.1:${gateway.port}/test?replicaSet=rs0`,
    async stop() {
      await gateway.close();
      await server.stop();
    },
  };
}

/**
 * Creates what an installation of the packages would: a name of PostGIS, and a way to a library beside the extension.
 */
async function createLinks(root: string): Promise<void> {
  const [libraries = ''] = (await readdir(join(root, 'usr/lib'))).filter((name) => name.endsWith('-linux-gnu'));
  const links = [
    ['postgis-3.control', 'usr/share/postgresql/18/extension/postgis.control'],
    ['../postgresql/18/lib/pg_documentdb_core.so', join('usr/lib', libraries, 'pg_documentdb_core.so')],
  ] as const;
  for (const [target, link] of links) {
    await symlink(target, join(root, link)).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    });
  }
}
