import type { ClaimRequest } from '../../core/store.js';
import { dialects, type Dialect, type SqlDialect } from './dialects.js';

/**
 * A row of the table, in the forms in which the libraries return numbers. Its names are single words, because plugins of
 * libraries write others in camel case.
 */
export interface Row {
  readonly token: string;
  readonly fingerprint: string | null;
  readonly claimed: Integer;
  readonly settled: Integer | null;
  readonly expires: Integer;
  readonly now: Integer;
}

type Integer = number | string | bigint;

/** The reply to a claim by a lock: a row with the record that is in its way, if there is one. */
export type LockReply = { readonly granted: Integer } & (Row | { readonly token: null });

/** Who holds the lock of a callback, and since when, if the role may see it. */
export interface Lock {
  readonly backend: number | string;
  readonly since: Integer | null;
}

/** Whether a claim or a record still counts. */
export function isLive({ expires, now }: Row): boolean {
  return Number(expires) > Number(now);
}

/** The columns of a claim with a lease. */
const leaseColumns = 'id, token, event, external_id, claimed_at, expires_at';
/** A setting of PostgreSQL. */
const markName = 'transfer_callbacks.mark';
/** For how long after its claim a record needs no correction of its times. */
const slackMs = 1_000;

/**
 * The SQL for one table. Texts are written in hexadecimal: no setting, collation or placeholder of any library can change
 * them. Times are in milliseconds since 1970.
 */
export class Statements {
  readonly dialect: SqlDialect;
  readonly #syntax: Dialect;
  readonly #table: string;
  readonly #row: string;

  constructor(dialect: SqlDialect, name: string, schema: string | undefined) {
    this.dialect = dialect;
    const { quote, show, now } = (this.#syntax = dialects[dialect]);
    const quoted = (part: string): string => quote + part.replaceAll(quote, quote + quote) + quote;
    this.#table = schema === undefined ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;
    this.#row = `${show('token')} AS token, ${show('fingerprint')} AS fingerprint, claimed_at AS claimed,
  settled_at AS settled, expires_at AS expires, ${now} AS now`;
  }

  get create(): string {
    const { key, text } = this.#syntax;
    return `CREATE TABLE IF NOT EXISTS ${this.#table} (
  id ${key} NOT NULL PRIMARY KEY,
  token ${text} NOT NULL,
  event ${text} NOT NULL,
  external_id ${text} NOT NULL,
  fingerprint ${text},
  claimed_at bigint NOT NULL,
  settled_at bigint,
  expires_at bigint NOT NULL
);
`;
  }

  /** Fails unless the table is there, with its columns. */
  get probe(): string {
    return `SELECT id, event, external_id, ${this.#row} FROM ${this.#table} WHERE 1 = 0`;
  }

  look(id: string): string {
    return `SELECT ${this.#row} FROM ${this.#table} WHERE ${this.#isId(id)}`;
  }

  /** Deletes a row that has ended, or is a claim of the same delivery. */
  clear(id: string, { token }: ClaimRequest): string {
    return `DELETE FROM ${this.#table} WHERE ${this.#isId(id)} AND (expires_at <= ${this.#syntax.now} OR ${this.#isHeld(token)})`;
  }

  /**
   * PostgreSQL: the first statement of the handler's transaction. Inserts the record, which counts once the transaction
   * is committed, and holds the lock of the callback until it ends. Grants nothing if there is a record, which it returns,
   * or if another transaction holds the lock: a claim tries the lock, and never waits for it. The mark lasts as long as
   * the transaction, and so does the limit that ends the transaction of a machine that has vanished.
   */
  lock(id: string, request: ClaimRequest, mark: string, idleTimeoutMs: number | null): string {
    const { token, event = '', externalId = '', fingerprint, retentionMs } = request;
    const { literal, now } = this.#syntax;
    const idle =
      idleTimeoutMs === null ? '' : `, ${setLocal('idle_in_transaction_session_timeout', `${idleTimeoutMs}`)}`;
    return `WITH record AS (
  INSERT INTO ${this.#table} (id, token, event, external_id, fingerprint, claimed_at, settled_at, expires_at)
  SELECT ${[id, token, event, externalId, fingerprint].map(literal).join(', ')}, ${now}, ${now}, ${now} + ${retentionMs + slackMs}
  WHERE pg_try_advisory_xact_lock(${this.#lockNumber(id)}) ON CONFLICT (id) DO NOTHING
  RETURNING ${setLocal(markName, mark)}${idle}
) SELECT granted, found.* FROM (SELECT count(*)::int AS granted FROM record) AS claim LEFT JOIN (${this.look(id)}) AS found ON true`;
  }

  /** PostgreSQL: reads the backend that holds the lock of the callback, and when its transaction began. */
  readLock(id: string): string {
    // `pg_locks` splits the number of a lock into `classid` and `objid`.
    return `SELECT pid AS backend, floor(extract(epoch FROM xact_start) * 1000)::bigint AS since
FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND (classid::bigint << 32 | objid::bigint) = ${this.#lockNumber(id)}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
  }

  /** Inserts a claim with a lease. Returns no row, or fails in MySQL, if there is a row of this id. */
  claim(id: string, { token, event, externalId, leaseMs }: ClaimRequest): string {
    const insert = this.#insert([id, token, event, externalId], `${this.#syntax.now} + ${leaseMs}`);
    return this.dialect === 'mysql' ? insert : `${insert} ON CONFLICT (id) DO NOTHING RETURNING id`;
  }

  renew(id: string, { token, leaseMs }: ClaimRequest): string {
    const { now } = this.#syntax;
    return `UPDATE ${this.#table} SET expires_at = ${now} + ${leaseMs}
WHERE ${this.#isId(id)} AND ${this.#isHeld(token)} AND expires_at > ${now}`;
  }

  release(id: string, { token }: ClaimRequest): string {
    return `DELETE FROM ${this.#table} WHERE ${this.#isId(id)} AND ${this.#isHeld(token)}`;
  }

  /** MySQL: the first statement of the handler's transaction. The row lasts as long as this transaction. */
  mark(mark: string, { token }: ClaimRequest): string {
    return this.#insert([mark, token], '0');
  }

  /** MySQL: deletes the mark of a transaction that was committed. */
  unmark(mark: string): string {
    return `DELETE FROM ${this.#table} WHERE ${this.#isId(mark)}`;
  }

  /**
   * The last statement of the handler's transaction. Fails unless the mark is there and, in MySQL, the claim is held. A
   * ROLLBACK of the handler takes the mark with it, and so does a deadlock in MySQL. `heldMs` is the age of the claim.
   */
  settle(id: string, request: ClaimRequest, mark: string, heldMs: number): string {
    const { literal } = this.#syntax;
    if (this.dialect === 'postgres') {
      const isOwn = `current_setting('${markName}', true) = '${mark}'`;
      const failUnless = (isHeld: string): string =>
        `SELECT (CASE WHEN ${isHeld} THEN '1' ELSE 'claim not held' END)::int AS settled`;
      // A young record needs no correction of its times.
      if (heldMs < slackMs) return failUnless(isOwn);
      return `WITH settled AS (
  UPDATE ${this.#table} SET ${this.#settledValues(request)} WHERE ${this.#isId(id)} AND ${isOwn} RETURNING id
) ${failUnless('(SELECT count(*) FROM settled) = 1')}`;
    }
    // A claim that is not held has no token, and the column refuses that. FOR UPDATE reads the row as it is now, and not as
    // it was when the handler first read anything.
    // MariaDB from 11.6.2 refuses to lock a row that has changed since then, as each renewal changes it: older ones and MySQL
    // read a comment.
    return `/*M!110602 SET STATEMENT innodb_snapshot_isolation=OFF FOR */ INSERT INTO ${this.#table} (${leaseColumns}) VALUES (${literal(id)}, (SELECT token FROM (
  SELECT token FROM ${this.#table} WHERE ${this.#isId(id)} AND ${this.#isHeld(request.token)}
    AND EXISTS (SELECT 1 FROM ${this.#table} AS mark WHERE mark.${this.#isId(mark)}) FOR UPDATE
) AS held), '', '', 0, 0)
ON DUPLICATE KEY UPDATE ${this.#settledValues(request)}`;
  }

  /** SQLite: settles if the lease has not ended. */
  settleInTime(id: string, request: ClaimRequest): string {
    return `UPDATE ${this.#table} SET ${this.#settledValues(request)}
WHERE ${this.#isId(id)} AND ${this.#isHeld(request.token)} AND expires_at > ${this.#syntax.now}`;
  }

  /** SQLite: settles over the claim of another delivery. Needs a row: `claim` before it. */
  settleLate(id: string, request: ClaimRequest): string {
    return `UPDATE ${this.#table} SET token = ${this.#syntax.literal(request.token)}, ${this.#settledValues(request)}
WHERE ${this.#isId(id)}`;
  }

  /** Ends a settled record, and leaves `token` in it, which tells the caller that it was this call. */
  endRecord(id: string, fingerprint: string, token: string): string {
    const { literal, now } = this.#syntax;
    return `UPDATE ${this.#table} SET token = ${literal(token)}, expires_at = 0
WHERE ${this.#isId(id)} AND fingerprint = ${literal(fingerprint)} AND expires_at > ${now}`;
  }

  /** Finds records that were settled, and claims that ended, more than `olderThanMs` ago, in the order of their ids. */
  findOld(olderThanMs: number, after: string, limit: number): string {
    const { show, literal } = this.#syntax;
    return `SELECT ${show('id')} AS id FROM ${this.#table}
WHERE id > ${literal(after)} AND ${this.#isOld(olderThanMs)} ORDER BY ${this.#table}.id LIMIT ${limit}`;
  }

  removeOld(ids: readonly string[], olderThanMs: number): string {
    // By the primary key: a scan would wait for rows that the transactions of handlers have locked.
    const forced =
      this.dialect === 'mysql' ? `${this.#table} FROM ${this.#table} FORCE INDEX (PRIMARY)` : `FROM ${this.#table}`;
    return `DELETE ${forced} WHERE id IN (${ids.map(this.#syntax.literal).join(', ')}) AND ${this.#isOld(olderThanMs)}`;
  }

  #lockNumber(id: string): string {
    return `hashtextextended(${this.#syntax.literal(`${this.#table} ${id}`)}, 0)`;
  }

  #isId(id: string): string {
    return `id = ${this.#syntax.literal(id)}`;
  }

  #isHeld(token: string): string {
    return `(token = ${this.#syntax.literal(token)} AND fingerprint IS NULL)`;
  }

  #isOld(olderThanMs: number): string {
    return `coalesce(settled_at, expires_at) < ${this.#syntax.now} - ${olderThanMs}`;
  }

  #insert(
    [id = '', token = '', event = '', externalId = '']: readonly (string | undefined)[],
    expires: string,
  ): string {
    const { literal, now } = this.#syntax;
    return `INSERT INTO ${this.#table} (${leaseColumns})
VALUES (${[id, token, event, externalId].map(literal).join(', ')}, ${now}, ${expires})`;
  }

  #settledValues({ fingerprint, retentionMs }: ClaimRequest): string {
    const { literal, now } = this.#syntax;
    return `fingerprint = ${literal(fingerprint)}, settled_at = ${now}, expires_at = ${now} + ${retentionMs}`;
  }
}

function setLocal(name: string, value: string): string {
  return `set_config('${name}', '${value}', true)`;
}
