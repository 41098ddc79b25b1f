/** The databases that the store speaks to. `mysql` is MariaDB, too. */
export type SqlDialect = 'postgres' | 'mysql' | 'sqlite';

/** How a database writes what differs from the others. */
export interface Dialect {
  readonly quote: string;
  /** The type of a key. */
  readonly key: string;
  /** The type of a text of any length. */
  readonly text: string;
  /** The time, in milliseconds since 1970, by the clock of the database. */
  readonly now: string;
  /** Renders a text as a literal. */
  readonly literal: (text: string) => string;
  /** Renders a column that is a text. */
  readonly show: (column: string) => string;
}

export const dialects: Readonly<Record<SqlDialect, Dialect>> = {
  postgres: {
    quote: '"',
    key: 'text',
    text: 'text',
    now: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
    // Without COLLATE it would have that of the name of the encoding, and no index would be used.
    literal: (text) => `convert_from(decode('${toHex(text)}', 'hex'), 'UTF8') COLLATE "default"`,
    show: (column) => column,
  },
  mysql: {
    quote: '`',
    // As bytes: MySQL compares texts without their trailing blanks.
    key: 'varbinary(1020)',
    text: 'mediumblob',
    // Not from a local time, which repeats an hour when summer time ends.
    now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)",
    literal: (text) => `X'${toHex(text)}'`,
    show: (column) => `CONVERT(${column} USING utf8mb4)`,
  },
  sqlite: {
    quote: '"',
    key: 'text',
    text: 'text',
    now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    literal: (text) => `CAST(X'${toHex(text)}' AS TEXT)`,
    show: (column) => column,
  },
};

/** PostgreSQL stores no NUL in a text. Buffer turns a lone surrogate, which no database stores, into U+FFFD. */
function toHex(text: string): string {
  return Buffer.from(text.replaceAll('\0', '\uFFFD')).toString('hex');
}
