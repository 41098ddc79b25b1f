import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findOnPath, findUnpacked, installOnly, type DebianProgram } from './programs.js';

const run = promisify(execFile);

const debianMariaDb: DebianProgram = {
  name: 'mariadb-server',
  path: 'usr/sbin/mariadbd',
  download: [...installOnly, 'mariadb-server-core'],
  megabytes: 13,
};

/** The long-term release after the one of Debian's stable. Its default settings differ. */
const newMariaDb: DebianProgram = { ...debianMariaDb, name: 'mariadb-server-new', without: ['perl'], release: 'sid' };

/** No stable release of Debian has MySQL. */
const debianMySql: DebianProgram = {
  name: 'mysql-server',
  path: 'usr/sbin/mysqld',
  download: [...installOnly, 'mysql-server-core'],
  without: ['perl'],
  release: 'sid',
  megabytes: 48,
};

/** Resolves with the path of a MariaDB. Rejects with how to get one. */
export async function findMariaDb(): Promise<string> {
  const { MARIADBD_BIN } = process.env;
  if (MARIADBD_BIN) return MARIADBD_BIN;
  const program = (await findOnPath('mariadbd')) ?? (await findUnpacked(debianMariaDb));
  if (program !== undefined) return program;
  throw new Error(
    'The tests need a mariadbd on the PATH or in MARIADBD_BIN, and this machine has none: `apt install mariadb-server` on ' +
      'Debian, `brew install mariadb` on macOS, `apk add mariadb` on Alpine.',
  );
}

/** Resolves with the path of a MariaDB 11.8 or later. Rejects with how to get one. */
export async function findNewMariaDb(): Promise<string> {
  const { NEW_MARIADBD_BIN } = process.env;
  if (NEW_MARIADBD_BIN) return NEW_MARIADBD_BIN;
  const program = await findUnpacked(newMariaDb);
  if (program !== undefined) return program;
  throw new Error(
    'The tests need a mariadbd of MariaDB 11.8 in NEW_MARIADBD_BIN, and could not bring one: `apt install debian-archive-keyring` ' +
      'on Ubuntu, with which the tests do, or the archive for Linux of mariadb.org, unpacked anywhere.',
  );
}

/** Resolves with the path of a MySQL 9. Rejects with how to get one. */
export async function findMySql(): Promise<string> {
  const { MYSQLD_BIN } = process.env;
  if (MYSQLD_BIN) return MYSQLD_BIN;
  const onPath = await findOnPath('mysqld');
  if (onPath !== undefined && (await isMySql9(onPath))) return onPath;
  const program = await findUnpacked(debianMySql);
  if (program !== undefined) return program;
  throw new Error(
    'The tests need a mysqld of MySQL 9 on the PATH or in MYSQLD_BIN, and this machine has none: ' +
      '`apt install debian-archive-keyring` on Ubuntu, with which the tests bring one, `brew install mysql` on macOS, or the ' +
      'archive for Linux of dev.mysql.com, unpacked anywhere.',
  );
}

/** MariaDB has a program of this name, too. */
async function isMySql9(path: string): Promise<boolean> {
  const { stdout } = await run(path, ['--version']);
  return stdout.includes('Ver 9.') && !stdout.includes('MariaDB');
}
