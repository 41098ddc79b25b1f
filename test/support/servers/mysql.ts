import { execFile } from 'node:child_process';
import { mkdir, readFile, readdir, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { findNeeded, type DebianProgram } from './programs.js';
import { makeFolder, startServer, type Server } from './server.js';

const run = promisify(execFile);

const debianMariaDb: DebianProgram = {
  name: 'mariadb-server',
  path: 'usr/sbin/mariadbd',
  package: 'mariadb-server-core',
  megabytes: 13,
};

/** The long-term release after the one of Debian's stable. Its default settings differ. */
const newMariaDb: DebianProgram = { ...debianMariaDb, name: 'mariadb-server-new', without: ['perl'], release: 'sid' };

/** No stable release of Debian has MySQL. */
const debianMySql: DebianProgram = {
  name: 'mysql-server',
  path: 'usr/sbin/mysqld',
  package: 'mysql-server-core',
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

export interface MySqlServer extends Server {
  /** Of the database `test`, as a user who may do everything. */
  readonly url: string;
}

/** What has been committed survives `kill`. It would not survive a crash of the machine: nothing waits for the disk. */
const settings = [
  '--innodb-flush-log-at-trx-commit=2',
  '--innodb-flush-method=nosync',
  '--innodb-use-native-aio=0',
  '--skip-log-bin',
  '--skip-name-resolve',
  // Both refuse to run as root otherwise.
  ...(process.getuid?.() === 0 ? ['--user=root'] : []),
];

/** Starts a MariaDB, by default the oldest that is tested, on a free port of the loopback, with more `options`. */
export async function startMariaDb(find = findMariaDb, options: readonly string[] = []): Promise<MySqlServer> {
  const path = await find();
  const base = await findBase(path);
  const created = await readSystemTables(base);
  return start(path, base, options, async (args) => {
    const bootstrap = run(path, [...args, '--bootstrap']);
    // Each statement begins on a line of its own.
    bootstrap.child.stdin?.end(`CREATE DATABASE test;\nCREATE DATABASE mysql;\nUSE mysql;\n${created}`);
    await bootstrap;
  });
}

/** Starts a MySQL on a free port of the loopback, with more `options`. */
export async function startMySql(options: readonly string[] = []): Promise<MySqlServer> {
  const path = await findMySql();
  const own = ['--mysqlx=OFF', '--secure-file-priv=NULL', ...options];
  return start(path, await findBase(path), own, async (args, folder) => {
    const file = join(folder, 'initial.sql');
    await writeFile(
      file,
      `CREATE DATABASE test; CREATE USER root@127.0.0.1; GRANT ALL ON *.* TO root@127.0.0.1 WITH GRANT OPTION;`,
    );
    await run(path, [...args, '--initialize-insecure', `--init-file=${file}`]);
  });
}

/** Creates the data and starts a server on it. */
async function start(
  path: string,
  base: string,
  own: readonly string[],
  createData: (args: readonly string[], folder: string) => Promise<void>,
): Promise<MySqlServer> {
  const folder = await makeFolder();
  const data = join(folder, 'data');
  // A starting MariaDB removes the temporary tables that it finds, also those of another server.
  const temporary = join(folder, 'temporary');
  await Promise.all([mkdir(data), mkdir(temporary)]);
  const folders = [`--basedir=${base}`, `--datadir=${data}`, `--tmpdir=${temporary}`];
  const args = ['--no-defaults', ...folders, ...settings, ...own];
  await createData(args, folder);
  const server = await startServer({
    path,
    folder,
    args: (port) => [...args, '--bind-address=127.0.0.1', `--port=${port}`, '--socket=socket', '--pid-file=pid'],
    ready: 'ready for connections',
    stopSignal: 'SIGTERM',
  });
  return { ...server, url: `mysql://root@127.0.0.1:${server.port}/test` };
}

/** Resolves with the folder that a server is installed in. */
async function findBase(path: string): Promise<string> {
  return basename(path) === 'run' ? join(dirname(path), 'usr') : dirname(dirname(await realpath(path)));
}

/** Resolves with the statements that create MariaDB's own tables. */
async function readSystemTables(base: string): Promise<string> {
  for (const folder of ['share/mariadb', 'share/mysql'].map((path) => join(base, path))) {
    const names = await readdir(folder).catch(() => []);
    const files = names.filter((name) => /^(?:mariadb|mysql)_system_tables(?:_data)?\.sql$/.test(name)).sort();
    if (files.length === 2)
      return (await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')))).join('');
  }
  throw new Error(`MariaDB's system tables are not below ${base}/share.`);
}
