import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import SqliteFile from 'better-sqlite3';
import { createConnection } from 'mysql2/promise';
import { removeTemporary } from '../support/programs/child.js';
import { findMariaDb, findNewMariaDb, type MySqlServer, startMariaDb, startMySql } from '../support/servers/mysql.js';
import { startPostgres, type PostgresServer } from '../support/servers/postgres.js';
import { makeFolder, type Server } from '../support/servers/server.js';

export type Dialect = 'postgres' | 'mysql' | 'sqlite';

export interface Database {
  readonly name: string;
  readonly dialect: Dialect;
  /** Starts it, with the tables that handlers write to. MySQL and MariaDB take more options of the server. */
  readonly start: (options?: readonly string[]) => Promise<Started>;
}

export interface Started extends Pick<Server, 'stop'>, Partial<Pick<Server, 'kill' | 'restart'>> {
  readonly url: string;
}

/**
 * Handlers insert into `written`. Two that insert the same two rows into `locked` in opposite order meet a deadlock.
 */
const columns = 'name varchar(255) NOT NULL); CREATE TABLE locked (name varchar(255) PRIMARY KEY)';

const tables = {
  postgres: `CREATE TABLE written (id serial PRIMARY KEY, ${columns}`,
  mysql: `CREATE TABLE written (id int AUTO_INCREMENT PRIMARY KEY, ${columns}`,
  sqlite: `CREATE TABLE written (id integer PRIMARY KEY, ${columns}`,
};

/** PostgreSQL finds only at COMMIT that it must refuse a row. */
const refusedAtCommit = `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''refused''; END';
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON written DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NEW.name LIKE 'refused %') EXECUTE FUNCTION refuse()`;

export const databases: readonly Database[] = [
  { name: 'PostgreSQL 18', dialect: 'postgres', start: async () => addTables(await startPostgres(18)) },
  { name: 'PostgreSQL 15', dialect: 'postgres', start: async () => addTables(await startPostgres(15)) },
  {
    name: 'MariaDB',
    dialect: 'mysql',
    start: async (options) => addMySqlTables(await startMariaDb(findMariaDb, options)),
  },
  {
    name: 'MariaDB 11.8',
    dialect: 'mysql',
    start: async (options) => addMySqlTables(await startMariaDb(findNewMariaDb, options)),
  },
  { name: 'MySQL', dialect: 'mysql', start: async (options) => addMySqlTables(await startMySql(options)) },
  { name: 'SQLite', dialect: 'sqlite', start: makeFile },
];

async function addTables(server: PostgresServer): Promise<PostgresServer> {
  await server.pool().query(`${tables.postgres};\n${refusedAtCommit}`);
  return server;
}

async function addMySqlTables(server: MySqlServer): Promise<MySqlServer> {
  const connection = await createConnection({ uri: server.url, multipleStatements: true });
  await connection.query(tables.mysql);
  await connection.end();
  return server;
}

async function makeFile(): Promise<Started> {
  const folder = await makeFolder();
  const url = pathToFileURL(join(folder, 'callbacks.db')).href;
  const file = openFile(url);
  file.exec(tables.sqlite);
  file.close();
  return { url, stop: () => removeTemporary(folder) };
}

/** Opens a file of SQLite that several processes write to. */
export function openFile(url: string): SqliteFile.Database {
  const file = new SqliteFile(fileURLToPath(url), { timeout: 1_000 });
  file.pragma('journal_mode = WAL');
  return file;
}
