import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findNeeded, installOnly, type DebianProgram } from './programs.js';

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

export const findMariaDb = () =>
  findNeeded({
    what: 'a mariadbd on the PATH or in MARIADBD_BIN',
    howToGetIt: '`apt install mariadb-server` on Debian, `brew install mariadb` on macOS, `apk add mariadb` on Alpine.',
    variable: 'MARIADBD_BIN',
    names: ['mariadbd'],
    debian: debianMariaDb,
  });

/** How to have what is unpacked out of Debian sid. */
const keysOfDebian = '`apt install debian-archive-keyring` on Ubuntu, with which the tests bring one,';

/** Finds a MariaDB 11.8 or later. */
export const findNewMariaDb = () =>
  findNeeded({
    what: 'a mariadbd of MariaDB 11.8 in NEW_MARIADBD_BIN',
    howToGetIt: `${keysOfDebian} or the archive for Linux of mariadb.org, unpacked anywhere.`,
    variable: 'NEW_MARIADBD_BIN',
    debian: newMariaDb,
  });

export const findMySql = () =>
  findNeeded({
    what: 'a mysqld of MySQL 9 on the PATH or in MYSQLD_BIN',
    howToGetIt: `${keysOfDebian} \`brew install mysql\` on macOS, or the archive for Linux of dev.mysql.com, unpacked anywhere.`,
    variable: 'MYSQLD_BIN',
    names: ['mysqld'],
    isRight: isMySql9,
    debian: debianMySql,
  });

/** MariaDB has a program of this name, too. */
async function isMySql9(path: string): Promise<boolean> {
  const { stdout } = await run(path, ['--version']);
  return stdout.includes('Ver 9.') && !stdout.includes('MariaDB');
}
