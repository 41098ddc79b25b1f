/**
 * Text as SQL: all but letters, digits and the marks of JSON by their code points, so that nothing can end the literal.
 * A literal, and no function of one, because a function's answer may have a collation that no index has.
 */
export function textOf(value: string): string {
  // Through a Buffer a lone surrogate, which Postgres refuses, becomes U+FFFD.
  const escaped = Buffer.from(value)
    .toString()
    .replaceAll(
      /[^\w\-.,:"[\]{} ]/gu,
      (character) => `\\+${(character.codePointAt(0) ?? 0).toString(16).padStart(6, '0')}`,
    );
  return `U&'${escaped}'`;
}

/** A name as SQL, in any spelling. */
export function nameOf(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** What a transaction is allowed, in milliseconds, until Postgres ends it by itself. */
export interface Limits {
  readonly statementTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

/**
 * The table: one row for each callback whose handler has succeeded. `event` and `external_id` are for people;
 * `expires_at` is when the row no longer counts, and `settled_at` what `prune` goes by.
 */
export function tableSql(table: string, index: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  id text PRIMARY KEY,
  event text NOT NULL,
  external_id text NOT NULL,
  fingerprint text NOT NULL,
  settled_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS ${index} ON ${table} USING brin (settled_at);
`;
}

/**
 * Begins a transaction, locks the id in it or not at once, and looks for its record. In one message, yet statement by
 * statement: each sees what was committed before it, so that whoever gets the lock sees the record that its last
 * holder has left. A stricter isolation level would show the state from before the lock.
 */
export function claimSql(table: string, id: string, { statementTimeoutMs, idleTimeoutMs }: Limits): string {
  return `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = ${statementTimeoutMs};
SET LOCAL idle_in_transaction_session_timeout = ${idleTimeoutMs};
SELECT pg_try_advisory_xact_lock(hashtextextended(${textOf(`${table} ${id}`)}, 0)) AS locked;
SELECT fingerprint, expires_at > clock_timestamp() AS live FROM ${table} WHERE id = ${textOf(id)}`;
}

/** Makes room for a new record of a callback whose old one has expired. */
export function forgetSql(table: string, id: string): string {
  return `DELETE FROM ${table} WHERE id = ${textOf(id)} AND expires_at <= clock_timestamp()`;
}

/** Records and commits, in one message. If the insertion fails, nothing is committed. */
export function settleSql(
  table: string,
  row: { id: string; event: string; externalId: string; fingerprint: string; retentionMs: number },
): string {
  // Postgres keeps no NUL in a text. This column is for people only.
  const externalId = row.externalId.replaceAll('\0', '\uFFFD');
  return `INSERT INTO ${table} (id, event, external_id, fingerprint, settled_at, expires_at)
VALUES (${[row.id, row.event, externalId, row.fingerprint].map(textOf).join(', ')},
  statement_timestamp(), statement_timestamp() + interval '${row.retentionMs} milliseconds');
COMMIT`;
}

/** Deletes up to `batch` rows that were settled more than `olderThanMs` ago. */
export function pruneSql(table: string, olderThanMs: number, batch: number): string {
  return `DELETE FROM ${table} WHERE id IN (
  SELECT id FROM ${table} WHERE settled_at < clock_timestamp() - interval '${olderThanMs} milliseconds' LIMIT ${batch}
)`;
}
