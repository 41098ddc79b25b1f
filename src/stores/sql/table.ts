import type { ClaimRequest } from '../../core/store.js';

/** How a database writes what differs from the others. */
export interface Syntax {
  readonly quote: string;
  /** The type of a key. */
  readonly key: string;
  /** The type of a string of any length. */
  readonly text: string;
  /** The time, in milliseconds since 1970, by the clock of the database. */
  readonly now: string;
  /** Renders a string as a literal. */
  readonly literal: (text: string) => string;
  /** Renders a column that is a string. */
  readonly show: (column: string) => string;
  /** Parses what a column that is a string is shown as. */
  readonly parse: (shown: string) => string;
  /** Begins a statement that deletes rows by their ids. */
  readonly deleteFrom: (table: string) => string;
  /** The settings by which a COMMIT waits for the disk, if the server has some. */
  readonly durability?: readonly DurabilitySetting[];
}

/** A setting by which a COMMIT waits for the disk. */
export interface DurabilitySetting {
  readonly name: string;
  /** Reads it, in SQL. */
  readonly sql: string;
  /** The values with which a crash loses nothing that was committed. */
  readonly safe: readonly string[];
  /** What to set instead, and where. */
  readonly cure: string;
}

type Integer = number | string | bigint;

/**
 * A row as a library returns it. Its names are single words, because plugins of libraries write others in camel case.
 * All are null if a LEFT JOIN has found none.
 */
interface RawRow {
  readonly token: string | null;
  readonly fingerprint: string | null;
  readonly claimed: Integer;
  readonly handled: Integer | null;
  readonly expires: Integer;
  readonly now: Integer;
}

/** A row of the table. Its times are in milliseconds since 1970. */
export interface Row {
  readonly token: string;
  /** Null in a claim that is not handled. */
  readonly fingerprint: string | null;
  readonly claimedAt: number;
  readonly handledAt: number;
  readonly expiresAt: number;
  /** How long the row still counts. Not positive if it has ended. */
  readonly leftMs: number;
}

/** The ids of rows. */
export type Ids = readonly string[];

/** A row of a callback that is handled. */
export interface HandledRow extends Row {
  readonly fingerprint: string;
}

/** Whether a claim or a record still counts. */
export function isLive({ leftMs }: Row): boolean {
  return leftMs > 0;
}

/** Whether the handler has succeeded, and the record of it still counts. Nothing is known of a row that is held. */
export function isHandled(row: Row | 'held' | undefined): row is HandledRow {
  return typeof row === 'object' && row.fingerprint !== null && isLive(row);
}

/**
 * The table, and the statements that all databases share. Its literals mean the same under every setting and collation,
 * and no library finds a placeholder in them.
 */
export class Table {
  /** With its schema, and quoted. */
  readonly name: string;
  /** With its schema, as in the messages of databases. */
  readonly plainName: string;
  readonly hasSchema: boolean;
  readonly syntax: Syntax;
  readonly #columns: string;

  constructor(syntax: Syntax, name: string, schema: string | undefined) {
    const { quote, show, now } = (this.syntax = syntax);
    const quoted = (part: string): string => quote + part.replaceAll(quote, quote + quote) + quote;
    this.hasSchema = schema !== undefined;
    this.plainName = schema === undefined ? name : `${schema}.${name}`;
    this.name = schema === undefined ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;
    this.#columns = `${show('token')} AS token, ${show('fingerprint')} AS fingerprint, claimed_at AS claimed,
  handled_at AS handled, expires_at AS expires, ${now} AS now`;
  }

  get create(): string {
    const { key, text } = this.syntax;
    return `CREATE TABLE IF NOT EXISTS ${this.name} (
  id ${key} NOT NULL PRIMARY KEY,
  token ${text} NOT NULL,
  event ${text} NOT NULL,
  external_id ${text} NOT NULL,
  fingerprint ${text},
  claimed_at bigint NOT NULL,
  handled_at bigint,
  expires_at bigint NOT NULL
);
`;
  }

  /** Fails unless the table is there, with its columns. */
  get probe(): string {
    return `SELECT id, event, external_id, ${this.#columns} FROM ${this.name} WHERE 1 = 0`;
  }

  /** Selects a row of constants, as `look` selects a record. */
  get sample(): string {
    const { literal, show } = this.syntax;
    const [token, fingerprint] = [literal('a token'), literal(sampleFingerprint)];
    return `SELECT ${show(token)} AS token, ${show(fingerprint)} AS fingerprint, 1 AS claimed, 2 AS handled, 3 AS expires, 4 AS now`;
  }

  /** Whether these rows are the rows of `sample`. */
  isSample(rows: readonly unknown[]): boolean {
    try {
      const { token, fingerprint, claimedAt, handledAt, expiresAt, leftMs } = this.toRow(rows) ?? {};
      const times = [claimedAt, handledAt, expiresAt, leftMs].join();
      return rows.length === 1 && token === 'a token' && fingerprint === sampleFingerprint && times === '1,2,3,-1';
    } catch {
      // It may be of any type.
      return false;
    }
  }

  /** Reads rows that meet a condition, in the order of `ids`. */
  look(ids: Ids, condition?: string): string {
    const where = [this.isId(ids), ...(condition === undefined ? [] : [condition])].join(' AND ');
    const order = ids.length > 1 ? ` ORDER BY ${this.isId(ids.slice(1))}` : '';
    return `SELECT ${this.#columns} FROM ${this.name} WHERE ${where}${order}`;
  }

  /** Inserts claims that end after `lengthMs`. */
  insert(ids: Ids, { token, event = '', externalId = '' }: ClaimRequest, lengthMs: number): string {
    const { literal, now } = this.syntax;
    const texts = [token, event, externalId].map(literal).join(', ');
    const rows = ids.map((id) => `(${literal(id)}, ${texts}, ${now}, ${now} + ${lengthMs})`);
    return `INSERT INTO ${this.name} (id, token, event, external_id, claimed_at, expires_at) VALUES ${rows.join(', ')}`;
  }

  /** What an update of a claim sets to settle it. */
  handledValues({ fingerprint, retentionMs }: ClaimRequest): string {
    const { literal, now } = this.syntax;
    return `fingerprint = ${literal(fingerprint)}, handled_at = ${now}, expires_at = ${now} + ${retentionMs}`;
  }

  /** Ends a handled record, and leaves `token` in it, which tells the caller that it was this call. */
  endRecord(id: string, fingerprint: string, token: string): string {
    const { literal, now } = this.syntax;
    return `UPDATE ${this.name} SET token = ${literal(token)}, expires_at = 0
WHERE ${this.isId([id])} AND fingerprint = ${literal(fingerprint)} AND expires_at > ${now}`;
  }

  /**
   * Finds rows that count no longer and were handled, or ended, more than `olderThanMs` ago, in the order of their ids.
   */
  findOld(olderThanMs: number, after: string, limit: number): string {
    const { show, literal } = this.syntax;
    return `SELECT ${show('id')} AS id FROM ${this.name}
WHERE id > ${literal(after)} AND ${this.#isOld(olderThanMs)} ORDER BY ${this.name}.id LIMIT ${limit}`;
  }

  removeOld(ids: readonly string[], olderThanMs: number): string {
    const { deleteFrom, literal } = this.syntax;
    return `${deleteFrom(this.name)} WHERE id IN (${ids.map(literal).join(', ')}) AND ${this.#isOld(olderThanMs)}`;
  }

  /** Deletes rows that have ended. */
  removeEnded(ids: Ids): string {
    return `DELETE FROM ${this.name} WHERE ${this.isId(ids)} AND expires_at <= ${this.syntax.now}`;
  }

  isId(ids: Ids): string {
    const [first, ...others] = ids.map(this.syntax.literal);
    return others.length === 0 ? `id = ${first}` : `id IN (${first}, ${others.join(', ')})`;
  }

  /** Whether a row is the claim of the delivery with this token. */
  isHeld(token: string): string {
    return `(token = ${this.syntax.literal(token)} AND fingerprint IS NULL)`;
  }

  /** Turns what a statement has returned into a row of the table: the first that is handled, or else the first. */
  toRow(found: readonly unknown[]): Row | undefined {
    const rows = found.flatMap((raw) => this.#toRow(raw as RawRow | undefined) ?? []);
    return rows.find(isHandled) ?? rows[0];
  }

  #toRow(raw: RawRow | undefined): Row | undefined {
    if (typeof raw?.token !== 'string') return undefined;
    const { parse } = this.syntax;
    return {
      token: parse(raw.token),
      fingerprint: raw.fingerprint === null ? null : parse(raw.fingerprint),
      claimedAt: Number(raw.claimed),
      handledAt: Number(raw.handled),
      expiresAt: Number(raw.expires),
      leftMs: Number(raw.expires) - Number(raw.now),
    };
  }

  #isOld(olderThanMs: number): string {
    const { now } = this.syntax;
    return `expires_at <= ${now} AND coalesce(handled_at, expires_at) < ${now} - ${olderThanMs}`;
  }
}

/** Looks like the fingerprint of a record, because a plugin that parses JSON would turn that into an array. */
const sampleFingerprint = '["SUCCESS",1,"XAF","check"]';

/** PostgreSQL stores no NUL in a string. Buffer turns a lone surrogate, which no database stores, into U+FFFD. */
export function toHex(text: string): string {
  return Buffer.from(text.replaceAll('\0', '\uFFFD')).toString('hex');
}
