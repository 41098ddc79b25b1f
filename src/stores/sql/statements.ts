import type { ClaimRequest } from '../../core/store.js';
import { dialects, type Dialect, type SqlDialect } from './dialects.js';

/**
 * A row of the table, in the forms in which the libraries return numbers. Its names are single words, because plugins of
 * libraries write others in camel case.
 */
export interface Row {
  readonly token: string;
  readonly fingerprint: string | null;
  readonly claimed: Milliseconds;
  readonly settled: Milliseconds | null;
  readonly expires: Milliseconds;
  readonly now: Milliseconds;
  /** The database's name of the session that runs the handler, if it shows it. */
  readonly backend?: string | null;
}

type Milliseconds = number | string | bigint;

/** Whether a claim or a record still counts. */
export function isLive({ expires, now }: Row): boolean {
  return Number(expires) > Number(now);
}

const columns = 'id, token, event, external_id, claimed_at, expires_at';
/** A setting of PostgreSQL that lasts as long as a transaction. */
const markName = 'transfer_callbacks.claim';

/**
 * The SQL for one table. Texts are written in hexadecimal: no setting, collation or placeholder of any library can change
 * them. Times are in milliseconds since 1970.
 */
export class Statements {
  readonly #dialect: SqlDialect;
  readonly #is: Dialect;
  readonly #table: string;
  readonly #row: string;

  constructor(dialect: SqlDialect, name: string, schema: string | undefined) {
    this.#dialect = dialect;
    const { quote, show, now } = (this.#is = dialects[dialect]);
    const quoted = (part: string): string => quote + part.replaceAll(quote, quote + quote) + quote;
    this.#table = schema === undefined ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;
    this.#row = `${show('token')} AS token, ${show('fingerprint')} AS fingerprint, claimed_at AS claimed,
  settled_at AS settled, expires_at AS expires, ${now} AS now`;
  }

  get create(): string {
    const { key, text } = this.#is;
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
    return `SELECT ${columns}, fingerprint, settled_at FROM ${this.#table} WHERE 1 = 0`;
  }

  look(id: string): string {
    return `SELECT ${this.#row} FROM ${this.#table} WHERE ${this.#isId(id)}`;
  }

  /** Reads the row, and in PostgreSQL also the backend that runs the handler: it holds the lock of `mark`. */
  read(id: string): string {
    if (this.#dialect !== 'postgres') return this.look(id);
    // `pg_locks` splits the number of a lock into `classid` and `objid`.
    return `SELECT ${this.#row}, (SELECT 'backend ' || min(pid) FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND (classid::bigint << 32 | objid::bigint) = hashtextextended(token, 0)
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS backend
FROM ${this.#table} WHERE ${this.#isId(id)}`;
  }

  /** Inserts the claim. Returns no row, or fails, if there is a row of this id. */
  claim(id: string, request: ClaimRequest): string {
    const { token, event, externalId, leaseMs } = request;
    const insert = this.#insert([id, token, event, externalId], `${this.#is.now} + ${leaseMs}`);
    if (this.#dialect === 'mysql') return insert;
    const inserted = `${insert} ON CONFLICT (id) DO NOTHING RETURNING id`;
    // A crash of the database that loses a claim ends the transaction of its handler, too. It need not wait for the disk.
    return this.#dialect === 'postgres' ? `${inserted}, ${setLocal('synchronous_commit', "'off'")}` : inserted;
  }

  /** Deletes the row if it has ended, or is a claim of the same delivery. */
  clear(id: string, { token }: ClaimRequest): string {
    return `DELETE FROM ${this.#table} WHERE ${this.#isId(id)} AND (expires_at <= ${this.#is.now} OR ${this.#isHeld(token)})`;
  }

  /**
   * The first statement of the handler's transaction. It leaves a mark that lasts as long as this transaction, so that
   * `settle` finds out if a ROLLBACK of the handler or a deadlock has ended it: a setting in PostgreSQL, and a row in
   * MySQL. In PostgreSQL it also limits for how long a machine that has vanished keeps its row locks.
   */
  mark(mark: string, { token }: ClaimRequest, idleTimeoutMs: number | null): string {
    if (this.#dialect === 'mysql') return this.#insert([mark, token], '0');
    const text = this.#is.literal(token);
    const idle =
      idleTimeoutMs === null ? '' : `, ${setLocal('idle_in_transaction_session_timeout', `'${idleTimeoutMs}'`)}`;
    return `SELECT ${setLocal(markName, `'${mark}'`)}, pg_try_advisory_xact_lock_shared(hashtextextended(${text}, 0))${idle}`;
  }

  /** Deletes what `mark` leaves behind of a transaction that was committed, if that is anything. */
  unmark(mark: string): string | undefined {
    return this.#dialect === 'mysql' ? `DELETE FROM ${this.#table} WHERE ${this.#isId(mark)}` : undefined;
  }

  /** The last statement of the handler's transaction. Fails unless the claim is held and the mark is there. */
  settle(id: string, request: ClaimRequest, mark: string): string {
    const isHeld = `${this.#isId(id)} AND ${this.#isHeld(request.token)}`;
    if (this.#dialect === 'mysql') {
      // A claim that is not held has no token, and the column refuses that. FOR UPDATE reads the row as it is now, and not
      // as it was when the handler first read anything.
      return `INSERT INTO ${this.#table} (${columns}) VALUES (${this.#is.literal(id)}, (SELECT token FROM (
  SELECT token FROM ${this.#table} WHERE ${isHeld}
    AND EXISTS (SELECT 1 FROM ${this.#table} AS mark WHERE mark.${this.#isId(mark)}) FOR UPDATE
) AS held), '', '', 0, 0)
ON DUPLICATE KEY UPDATE ${this.#settledValues(request)}`;
    }
    return `WITH settled AS (
  UPDATE ${this.#table} SET ${this.#settledValues(request)}
  WHERE ${isHeld} AND current_setting('${markName}', true) = '${mark}' RETURNING id
) SELECT (CASE count(*) WHEN 1 THEN '1' ELSE 'claim not held: ' || count(*) END)::int AS settled FROM settled`;
  }

  /** Settles without a transaction, if the lease has not ended. */
  settleInTime(id: string, request: ClaimRequest): string {
    return `UPDATE ${this.#table} SET ${this.#settledValues(request)}
WHERE ${this.#isId(id)} AND ${this.#isHeld(request.token)} AND expires_at > ${this.#is.now}`;
  }

  /** Settles over the claim of another delivery. Needs a row: `claim` before it. */
  settleLate(id: string, request: ClaimRequest): string {
    return `UPDATE ${this.#table} SET token = ${this.#is.literal(request.token)}, ${this.#settledValues(request)}
WHERE ${this.#isId(id)}`;
  }

  renew(id: string, { token, leaseMs }: ClaimRequest): string {
    const { now } = this.#is;
    return `UPDATE ${this.#table} SET expires_at = ${now} + ${leaseMs}
WHERE ${this.#isId(id)} AND ${this.#isHeld(token)} AND expires_at > ${now}`;
  }

  release(id: string, { token }: ClaimRequest): string {
    return `DELETE FROM ${this.#table} WHERE ${this.#isId(id)} AND ${this.#isHeld(token)}`;
  }

  /** Ends a settled record, and leaves `token` in it, which tells the caller that it was this call. */
  endRecord(id: string, fingerprint: string, token: string): string {
    const { literal, now } = this.#is;
    return `UPDATE ${this.#table} SET token = ${literal(token)}, expires_at = 0
WHERE ${this.#isId(id)} AND fingerprint = ${literal(fingerprint)} AND expires_at > ${now}`;
  }

  /** Finds records that were settled, and claims that ended, more than `olderThanMs` ago. */
  findOld(olderThanMs: number, limit: number): string {
    return `SELECT ${this.#is.show('id')} AS id FROM ${this.#table} WHERE ${this.#isOld(olderThanMs)} LIMIT ${limit}`;
  }

  removeOld(ids: readonly string[], olderThanMs: number): string {
    // By the primary key: a scan would wait for rows that the transactions of handlers have locked.
    const forced =
      this.#dialect === 'mysql' ? `${this.#table} FROM ${this.#table} FORCE INDEX (PRIMARY)` : `FROM ${this.#table}`;
    return `DELETE ${forced} WHERE id IN (${ids.map(this.#is.literal).join(', ')}) AND ${this.#isOld(olderThanMs)}`;
  }

  #isId(id: string): string {
    return `id = ${this.#is.literal(id)}`;
  }

  #isHeld(token: string): string {
    return `(token = ${this.#is.literal(token)} AND fingerprint IS NULL)`;
  }

  #isOld(olderThanMs: number): string {
    return `coalesce(settled_at, expires_at) < ${this.#is.now} - ${olderThanMs}`;
  }

  #insert(
    [id = '', token = '', event = '', externalId = '']: readonly (string | undefined)[],
    expires: string,
  ): string {
    const { literal, now } = this.#is;
    return `INSERT INTO ${this.#table} (${columns})
VALUES (${[id, token, event, externalId].map(literal).join(', ')}, ${now}, ${expires})`;
  }

  #settledValues({ fingerprint, retentionMs }: ClaimRequest): string {
    const { literal, now } = this.#is;
    return `fingerprint = ${literal(fingerprint)}, settled_at = ${now}, expires_at = ${now} + ${retentionMs}`;
  }
}

function setLocal(name: string, value: string): string {
  return `set_config('${name}', ${value}, true)`;
}
