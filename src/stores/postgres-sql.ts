/**
 * The SQL of `postgresStore`. Values are inlined as escaped literals, because the store sends several statements in one
 * message to save round trips: Postgres takes parameters with one statement only.
 */

/** What the table keeps of a callback. */
interface CallbackRow {
  readonly id: string;
  readonly event?: string;
  readonly externalId?: string;
  readonly fingerprint: string;
  readonly retentionMs: number;
}

/** How long Postgres lets a transaction run a statement or stay idle, in milliseconds. `null` keeps the session's limit. */
export interface Limits {
  readonly statementTimeoutMs: number | null;
  readonly idleTimeoutMs: number | null;
}

/** The settings that a claim began with. The handler may change them, and the name of the table depends on them. */
export interface SessionSettings {
  readonly search_path: string;
  readonly role: string;
}

/** For how long after its claim a record needs no correction of its times, in milliseconds. */
export const slackMs = 1_000;

/**
 * Renders a text as an SQL literal. Every character outside a safe set becomes a code point, so that nothing can end
 * the literal. `E''` means the same under every setting of `standard_conforming_strings`.
 */
function toLiteral(value: string): string {
  // Buffer turns a lone surrogate, which Postgres refuses, into U+FFFD.
  const escaped = Buffer.from(value)
    .toString()
    .replaceAll(
      /[^\w\-.,:"[\]{} ]/gu,
      (character) => `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, '0')}`,
    );
  return `E'${escaped}'`;
}

/** Renders a name as a quoted SQL identifier. */
export function toIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Creates the table: one row for each callback whose handler has succeeded. `event` and `external_id` are for people.
 * From `expires_at` on the row no longer counts; `prune` goes by `settled_at`.
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
 * Notes in the row with the empty id, which is no callback's, since when records are kept (`settled_at`) and for how many
 * milliseconds (`fingerprint`). Keeps an earlier note of the same length: records of another length may be missing.
 */
export function noteSql(table: string, retentionMs: number): string {
  return `INSERT INTO ${table} AS note (id, event, external_id, fingerprint, settled_at, expires_at)
VALUES ('', 'records are kept', '', '${retentionMs}', clock_timestamp(), 'infinity')
ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, settled_at = excluded.settled_at
WHERE note.fingerprint <> excluded.fingerprint`;
}

/** Reads the table's name as `found`, or NULL if there is no such table. */
export function existsSql(table: string): string {
  return `SELECT to_regclass(${toLiteral(table)})::text AS found`;
}

/** Creates the table once. The lock is needed because IF NOT EXISTS is not atomic: two processes could both create. */
export function migrateSql(migrationSql: string): string {
  return `BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('transfer-callbacks', 0)); ${migrationSql} COMMIT`;
}

/**
 * Begins the transaction of a claim and inserts the record, which counts once the transaction commits. Inserts nothing
 * if another transaction holds the lock of the id, or if there is a record already: the lock keeps claims from waiting
 * for each other, and the primary key makes a second record impossible. READ COMMITTED, so that the insertion sees
 * what the last holder of the lock committed. The savepoint is gone if the handler ends the transaction.
 */
export function claimSql(table: string, row: CallbackRow, limits: Limits): string {
  return `${beginSql(limits)};
${insertSql(table, row)};
SAVEPOINT transfer_callbacks`;
}

/** Begins the transaction of a claim on an expired record: deletes that record first, under the same lock. */
export function claimExpiredSql(table: string, row: CallbackRow, limits: Limits): string {
  return `${beginSql(limits)};
DELETE FROM ${table} WHERE id = ${toLiteral(row.id)} AND expires_at <= clock_timestamp() AND ${tryLockSql(table, row.id)};
${insertSql(table, row)};
SAVEPOINT transfer_callbacks`;
}

/** Reads the record that has kept a claim from inserting its own, and ends that claim's transaction. */
export function lookUpSql(table: string, id: string): string {
  return `SELECT fingerprint, CASE WHEN expires_at > clock_timestamp() THEN 'live' ELSE 'expired' END AS state,
  ${schemaSql(table)} AS schema FROM ${table} WHERE id = ${toLiteral(id)};
ROLLBACK`;
}

/** Commits. Fails if the handler has ended the transaction, or has left it failed. */
export const settleSql = 'RELEASE transfer_callbacks; COMMIT';

/**
 * Commits a record that is older than `slackMs`, with the times of settling. Restores the settings of the claim first:
 * after a `SET LOCAL` by the handler the name could mean another table, or the role could have no right to it.
 * RELEASE comes before, because it ends a `SET TRANSACTION READ ONLY` of the handler.
 */
export function settleLateSql(
  table: string,
  { id, retentionMs }: CallbackRow,
  { search_path: searchPath, role }: SessionSettings,
): string {
  return `RELEASE transfer_callbacks;
SELECT set_config('role', ${toLiteral(role)}, true), set_config('search_path', ${toLiteral(searchPath)}, true);
UPDATE ${table} SET settled_at = statement_timestamp(),
  expires_at = statement_timestamp() + interval '${retentionMs} milliseconds' WHERE id = ${toLiteral(id)};
COMMIT`;
}

/**
 * Reads who holds the lock of an id, then its record, then the note. In this order, and READ COMMITTED, because a holder's record
 * becomes visible before its lock is released: a callback that is settled meanwhile never looks free. The lock's number
 * is split into `classid` and `objid`, as `pg_locks` documents it. Columns of `pg_stat_activity` are null for a role that
 * may not see them. Times are in milliseconds since 1970, because an app may have changed how its driver parses dates.
 */
export function readSql(table: string, id: string): string {
  return `BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
SELECT l.pid, a.application_name AS application, host(a.client_addr) AS address, ${toMs('a.xact_start')} AS since_ms
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (l.classid::bigint << 32 | l.objid::bigint) = ${lockKeySql(table, id)};
SELECT fingerprint, ${toMs('settled_at')} AS settled_ms, ${toMs('expires_at')} AS expires_ms
FROM ${table} WHERE id = ${toLiteral(id)} AND expires_at > clock_timestamp();
SELECT fingerprint AS retention_ms, ${toMs('settled_at')} AS since_ms,
  CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'primary' END AS server
FROM (VALUES ('')) AS note (id) LEFT JOIN ${table} USING (id);
COMMIT`;
}

/**
 * Deletes a live record if it has this fingerprint. A running claim has no live record that others could see: its own
 * is not committed yet. Skips a record that is locked, which another call is deleting, and so waits for nothing.
 */
export function forgetSql(table: string, id: string, fingerprint: string): string {
  return `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
DELETE FROM ${table} WHERE id IN (
  SELECT id FROM ${table} WHERE id = ${toLiteral(id)} AND fingerprint = ${toLiteral(fingerprint)}
    AND expires_at > clock_timestamp() FOR UPDATE SKIP LOCKED
);
COMMIT`;
}

/**
 * Deletes up to `batch` rows settled more than `olderThanMs` ago, except those that a claim is replacing. If they could
 * have been kept for longer, the note begins anew. CASE, because Postgres may cast before it compares the id.
 */
export function pruneSql(table: string, olderThanMs: number, batch: number): string {
  return `UPDATE ${table} SET settled_at = clock_timestamp() 
WHERE id = '' AND CASE id WHEN '' THEN fingerprint::numeric END > ${olderThanMs};
DELETE FROM ${table} WHERE id IN (
  SELECT id FROM ${table} WHERE settled_at < clock_timestamp() - interval '${olderThanMs} milliseconds' AND id <> ''
  LIMIT ${batch} FOR UPDATE SKIP LOCKED
)`;
}

function beginSql({ statementTimeoutMs, idleTimeoutMs }: Limits): string {
  const begin = ['BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE'];
  if (statementTimeoutMs !== null) begin.push(`SET LOCAL statement_timeout = ${statementTimeoutMs}`);
  if (idleTimeoutMs !== null) begin.push(`SET LOCAL idle_in_transaction_session_timeout = ${idleTimeoutMs}`);
  return begin.join(';\n');
}

function insertSql(table: string, { id, event = '', externalId = '', fingerprint, retentionMs }: CallbackRow): string {
  // Postgres stores no NUL in a text. The column is for people only.
  const texts = [id, event, externalId.replaceAll('\0', '\uFFFD'), fingerprint].map(toLiteral).join(', ');
  return `INSERT INTO ${table} (id, event, external_id, fingerprint, settled_at, expires_at)
SELECT ${texts}, statement_timestamp(), statement_timestamp() + interval '${retentionMs + slackMs} milliseconds'
WHERE ${tryLockSql(table, id)} ON CONFLICT (id) DO NOTHING
RETURNING current_setting('search_path') AS search_path, current_setting('role') AS role, ${schemaSql(table)} AS schema,
  CASE WHEN transaction_timestamp() = statement_timestamp() THEN 'own' ELSE 'open' END AS transaction`;
}

function schemaSql(table: string): string {
  return `(pg_identify_object('pg_catalog.pg_class'::regclass, to_regclass(${toLiteral(table)}), 0)).schema`;
}

function tryLockSql(table: string, id: string): string {
  return `pg_try_advisory_xact_lock(${lockKeySql(table, id)})`;
}

function lockKeySql(table: string, id: string): string {
  return `hashtextextended(${toLiteral(`${table} ${id}`)}, 0)`;
}

function toMs(time: string): string {
  return `(extract(epoch FROM ${time}) * 1000)::float8`;
}
