import type { Mechanism, MechanismSettings } from './claims.js';
import { mysqlMechanism, mysqlSyntax } from './mysql.js';
import { postgresMechanism, postgresSyntax } from './postgres.js';
import { sqliteMechanism, sqliteSyntax } from './sqlite.js';
import type { Syntax, Table } from './table.js';
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
  readonly keepRecords: <Tx>(engine: SqlEngine<Tx>, table: Table, settings: MechanismSettings) => Mechanism<Tx>;
}

export const dialects: Readonly<Record<SqlDialect, Dialect>> = {
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
