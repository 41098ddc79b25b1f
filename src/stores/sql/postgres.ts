import type { ClaimRequest } from '../../core/store.js';
import {
  claimTries,
  endRecord,
  inProgress,
  isTimeout,
  toRefusal,
  toHandledRecord,
  type Mechanism,
  type Query,
  type Records,
} from './claims.js';
import { isLive, isHandled, toHex, type Ids, type Row, type Syntax, type Table } from './table.js';
import {
  defaultHeldMs,
  grantOnce,
  toClaim,
  type RefusedTransaction,
  type Send,
  type SqlEngine,
  type TransactionClaim,
} from './transaction.js';

export const postgresSyntax: Syntax = {
  quote: '"',
  key: 'text',
  text: 'text',
  now: "(date_part('epoch', clock_timestamp()) * 1000)::bigint",
  // Without COLLATE the text would have the collation of the encoding's name, and no index would be used.
  literal: (text) => `${plain.test(text) ? `'${text}'` : toDecoded(text)} COLLATE "default"`,
  show: (column) => column,
  parse: (shown) => shown,
  deleteFrom: (table) => `DELETE FROM ${table}`,
  durability: [
    {
      name: 'synchronous_commit',
      sql: "current_setting('synchronous_commit')",
      safe: ['on', 'local', 'remote_write', 'remote_apply'],
      cure: 'Set it to `on` for the role of the store.',
    },
  ],
};

/**
 * A string that neither a setting of the server nor a library changes between quotes: no quote, no backslash, and
 * nothing that a library takes for a placeholder or a comment. The server plans it in half the time that it needs for
 * `decode`.
 */
const plain = /^(?!.*--)[\w .,/[\]"+=-]*$/;

function toDecoded(text: string): string {
  return `convert_from(decode('${toHex(text)}', 'hex'), 'UTF8')`;
}

/** The holder of the lock of a callback, and since when, if the role may see it. */
interface Lock {
  readonly backend: number | string;
  readonly since: number | string | bigint | null;
}

/**
 * Claims callbacks in PostgreSQL, by a lock. The record is inserted by the first statement of the handler's
 * transaction, and counts as soon as that is committed: with the handler's writes, even if the handler commits it.
 */
export function postgresMechanism<Tx>(
  engine: SqlEngine<Tx>,
  table: Table,
  idleTimeoutMs: number | null,
): Mechanism<Tx> {
  const { query } = engine;
  return {
    claim: grantOnce(async (records, request) => {
      for (let tried = 0; tried < claimTries; tried += 1) {
        const begun = await begin(engine, table, records, request, idleTimeoutMs).catch(async (error: unknown) => {
          if (isTimeout(error)) throw error;
          // A server that refuses every write may still show a success.
          const row = await readCommitted(query, table, records.ids).catch(() => undefined);
          if (row === undefined || !isLive(row)) throw error;
          return toRefusal(row);
        });
        if ('tx' in begun || 'state' in begun) return begun;
        const { inTheWay, ended } = begun;
        if (inTheWay === 'held') break;
        if (isLive(inTheWay)) return toRefusal(inTheWay);
        // Until then this transaction holds the lock, which the next attempt needs.
        await ended;
        await query(table.removeEnded(records.ids)).catch(() => undefined);
      }
      // Another delivery holds the lock, or has just released its claim: the caller claims again.
      return inProgress;
    }),
    async read(id) {
      // The lock first: a record is visible before its lock is free, so a claim that is being settled never reads as
      // free.
      const [held] = (await query(readLock(table, id))) as readonly Lock[];
      const row = await readCommitted(query, table, [id]);
      if (isHandled(row)) return toHandledRecord(row);
      if (held === undefined) return { state: 'free' };
      const since = held.since === null ? {} : { since: new Date(Number(held.since)) };
      return { state: 'claimed', by: `backend ${held.backend}`, ...since };
    },
    forget: (id, fingerprint) => endRecord(query, table, id, fingerprint),
  };
}

/** Begins the transaction of a handler, unless a row or another transaction is in the way. */
async function begin<Tx>(
  engine: SqlEngine<Tx>,
  table: Table,
  records: Records,
  request: ClaimRequest,
  idleTimeoutMs: number | null,
): Promise<TransactionClaim<Tx> | RefusedTransaction> {
  const { ids } = records;
  const insertion = insert(table, records, request, idleTimeoutMs);
  /** The number of the transaction that has inserted the records. */
  let transaction = 0n;
  // A library may not roll back if the handler has left a nested transaction running.
  const undo = (send: Send) => send('ROLLBACK', 'rollback');
  const open = await engine.begin(
    {
      async claim(send) {
        const inserted = (await send(insertion, 'first')) as readonly { readonly xid: string }[];
        const [row] = inserted;
        if (row !== undefined && inserted.length === ids.length) {
          transaction = BigInt(row.xid);
          return undefined;
        }
        // One of two rows was in the way: the look must not commit the other one.
        if (row !== undefined) await undo(send);
        const found = await send(table.look(ids), row === undefined ? 'look' : undefined);
        return table.toRow(found) ?? 'held';
      },
      undo,
    },
    request,
  );
  if ('inTheWay' in open) return open;
  return toClaim(open, request, {
    record: (send) => send(commitIfIn(transaction), 'last'),
    // Both rows are committed, or neither is.
    look: () => readCommitted(engine.query, table, ids.slice(0, 1)),
  });
}

function readCommitted(query: Query, table: Table, ids: Ids): Promise<Row | undefined> {
  return query(table.look(ids, ifNothingIsWritten('true'))).then((rows) => table.toRow(rows));
}

/**
 * The first statement of the handler's transaction. Inserts the records, which count once the transaction is committed,
 * and holds the locks of the transfer and of each record until it ends. Returns a row for each that it has inserted,
 * and none if another transaction holds a lock: a claim tries a lock, and never waits for it. Reads no table: with
 * SERIALIZABLE, claims of unrelated callbacks would otherwise end each other.
 *
 * A record expires later by the time that the handler may take. Nothing corrects that later, because the handler may
 * give up the right to. The limit that ends the transaction of a machine that has vanished lasts as long as the
 * transaction.
 */
function insert(
  table: Table,
  { transfer, ids }: Records,
  { token, event = '', externalId = '', fingerprint, retentionMs, maxHeldMs = defaultHeldMs }: ClaimRequest,
  idleTimeoutMs: number | null,
): string {
  const { literal, now } = table.syntax;
  const idle =
    idleTimeoutMs === null
      ? ''
      : `, set_config('idle_in_transaction_session_timeout', '${idleTimeoutMs}', true) AS idle`;
  const texts = [token, event, externalId, fingerprint].map(literal).join(', ');
  const keys = ids.map(literal).join(', ');
  const locks = [...new Set([transfer, ...ids])].map((id) => `pg_try_advisory_xact_lock(${lockNumber(table, id)})`);
  return `INSERT INTO ${table.name} (id, token, event, external_id, fingerprint, claimed_at, handled_at, expires_at)
  SELECT ${ids.length === 1 ? keys : `unnest(ARRAY[${keys}])`}, ${texts}, now, now, now + ${maxHeldMs + retentionMs}
  FROM (SELECT ${now} AS now WHERE ${ifNothingIsWritten(`(${locks.join(' AND ')})`)}) AS clock
  ON CONFLICT (id) DO NOTHING RETURNING txid_current()::text AS xid${idle}`;
}

/**
 * The last statement of the handler's transaction. Fails in any other transaction: a handler may have sent ROLLBACK
 * and begun another one. Touches no table and no setting, because a handler may change its role, make its transaction
 * read-only, and reset all settings.
 */
function commitIfIn(transaction: bigint): string {
  return `SELECT (CASE WHEN txid_current_if_assigned() = ${transaction} THEN '1' ELSE 'claim not held' END)::int AS handled`;
}

/** Reads the backend that holds the lock of the callback, and when its transaction began. */
function readLock(table: Table, id: string): string {
  // `pg_locks` splits the number of a lock into `classid` and `objid`.
  return `SELECT pid AS backend, floor(date_part('epoch', xact_start) * 1000)::bigint AS since
FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND (classid::bigint << 32 | objid::bigint) = ${lockNumber(table, id)}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
}

function lockNumber(table: Table, id: string): string {
  return `hashtextextended(${table.syntax.literal(`${table.name} ${id}`)}, 0)`;
}

/**
 * Renders a condition that fails with an error if the connection still has a transaction of another claim, or of the
 * app, that has written. A claim would commit these writes with its own, and a look would take their row for a record.
 */
function ifNothingIsWritten(condition: string): string {
  return `(CASE WHEN txid_current_if_assigned() IS NULL THEN ${condition}::text ELSE 'another transaction is open' END)::boolean`;
}
