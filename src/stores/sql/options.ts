import { invalidArgument, onlyKnownOptions, wholeNumber } from '../../lib/checks.js';
import type { Mechanism } from './claims.js';
import { mysqlMechanism, mysqlSyntax } from './mysql.js';
import { postgresMechanism, postgresSyntax } from './postgres.js';
import { sqliteMechanism, sqliteSyntax } from './sqlite.js';
import { Table, type Syntax } from './table.js';
import type { SqlEngine } from './transaction.js';

/** The databases that the store speaks to. `mysql` includes MariaDB. */
export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

interface Dialect {
  readonly syntax: Syntax;
  /** The schema of the table if the options do not name one. Default: the schema of the connection. */
  readonly schema?: string;
  /** Whether handlers get a transaction. */
  readonly isTransactional: boolean;
  /** How claims and records are kept. Without a transaction it sends by `query` only. */
  readonly keepRecords: <Tx>(engine: SqlEngine<Tx>, table: Table, idleTimeoutMs: number | null) => Mechanism<Tx>;
}

const dialects: Readonly<Record<SqlDialect, Dialect>> = {
  postgres: {
    syntax: postgresSyntax,
    schema: 'public',
    isTransactional: true,
    keepRecords: postgresMechanism,
  },
  mysql: {
    syntax: mysqlSyntax,
    isTransactional: true,
    keepRecords: mysqlMechanism,
  },
  sqlite: {
    syntax: sqliteSyntax,
    isTransactional: false,
    keepRecords: sqliteMechanism as Dialect['keepRecords'],
  },
};

/** Options of a store in a table of a database. */
export interface SqlStoreOptions {
  /**
   * The table.
   * @default 'transfer_callbacks'
   */
  table?: string | undefined;
  /**
   * The table's schema; in MySQL its database.
   * @default 'public' in PostgreSQL, otherwise that of the connection
   */
  schema?: string | undefined;
  /**
   * How long the handler's transaction may wait between two statements, in milliseconds; in MySQL rounded up to
   * seconds. Then the database rolls it back, so that a machine that has vanished keeps neither the callback nor its
   * row locks. `null` keeps the setting of the connection. SQLite has no such setting.
   * @default 25 000
   */
  idleTimeoutMs?: number | null | undefined;
}

/** Options of a store on a library that does not say which database it talks to. */
export interface DialectOptions<D extends SqlDialect = SqlDialect> extends SqlStoreOptions {
  /** The database that the library talks to. Use `mysql` for MariaDB. */
  dialect: D;
}

const defaultIdleTimeoutMs = 25_000;

/** The names of `SqlStoreOptions`. */
export const optionNames: readonly string[] = ['table', 'schema', 'idleTimeoutMs'];

/** What the options of a store mean for its database. */
export interface StoreSettings extends Pick<Dialect, 'isTransactional' | 'keepRecords'> {
  readonly table: Table;
  readonly idleTimeoutMs: number | null;
}

/** Validates the options. Throws INVALID_ARGUMENT. */
export function resolveOptions(dialect: SqlDialect, options: SqlStoreOptions): StoreSettings {
  onlyKnownOptions(options, optionNames);
  if (!Object.hasOwn(dialects, dialect)) {
    const meant = (dialect as string) === 'mariadb' ? 'mysql' : 'postgres';
    throw invalidArgument('dialect', "'postgres', 'mysql' or 'sqlite'", dialect, `dialect: '${meant}'`);
  }
  const { syntax, schema: usualSchema, isTransactional, keepRecords } = dialects[dialect];
  const { table = 'transfer_callbacks', schema = usualSchema } = options;
  const { idleTimeoutMs = defaultIdleTimeoutMs } = options;
  requireName('table', table, 'transfer_callbacks');
  if (schema !== undefined) requireName('schema', schema, 'payouts');
  if (idleTimeoutMs !== null) wholeNumber('idleTimeoutMs', idleTimeoutMs, { min: 1, example: defaultIdleTimeoutMs });
  return { table: new Table(syntax, table, schema), idleTimeoutMs, isTransactional, keepRecords };
}

/** PostgreSQL cuts longer names, and two tables could become one. */
function requireName(option: string, value: unknown, example: string): void {
  if (typeof value === 'string' && /^[^\0]+$/.test(value) && Buffer.byteLength(value) <= 63) return;
  throw invalidArgument(option, 'a name of 1 to 63 bytes', value, `${option}: '${example}'`);
}
