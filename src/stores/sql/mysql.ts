import type { ClaimRequest, StoreRecord } from '../../core/store.js';
import { TransferCallbackError, listCauses } from '../../lib/errors.js';
import {
  claimTries,
  endRecord,
  inProgress,
  isTimeout,
  readRow,
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
  type ClaimSteps,
  type InTheWay,
  type Send,
  type SqlEngine,
} from './transaction.js';

export const mysqlSyntax: Syntax = {
  quote: '`',
  // As bytes: MySQL compares strings without their trailing blanks.
  key: 'varbinary(1020)',
  text: 'mediumblob',
  // Not from a local time, which repeats an hour when summer time ends.
  now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)",
  literal: (text) => `X'${toHex(text)}'`,
  // As digits: a string would be sent in the charset of the client, which may lack its characters.
  show: (column) => `HEX(${column})`,
  parse: (shown) => Buffer.from(shown, 'hex').toString(),
  // A scan would wait for rows that the transactions of handlers have locked.
  deleteFrom: (table) => `DELETE ${table} FROM ${table} FORCE INDEX (PRIMARY)`,
  durability: [
    {
      name: 'innodb_flush_log_at_trx_commit',
      sql: '@@innodb_flush_log_at_trx_commit',
      // MariaDB also has 3, which waits for one flush more.
      safe: ['1', '3'],
      cure: 'Set it to 1.',
    },
    {
      name: 'sync_binlog',
      // With a binary log InnoDB does not flush the COMMIT itself: after a crash it rolls back what that log lacks.
      sql: 'IF(@@log_bin AND @@innodb_flush_log_at_trx_commit <> 3, @@sync_binlog, 1)',
      safe: ['1'],
      cure: 'Set it to 1.',
    },
  ],
};

/** Numbers of errors. Their messages are in the language of `lc_messages`. */
const errors = {
  duplicateKey: 1062,
  /** MariaDB has no other number for a lock that NOWAIT did not get. */
  lockWaitTimeout: 1205,
  lockNotAvailable: 3572,
  moreThanOneRow: 1242,
  outOfRange: 1690,
};

/**
 * Fails immediately if another transaction has locked the row. MySQL reads the first comment, and MariaDB the second.
 */
const lockNowait = '/*!80001 FOR SHARE NOWAIT *//*M!100300 LOCK IN SHARE MODE NOWAIT */';

/**
 * Claims callbacks in MySQL and MariaDB. A named lock of the session is the gate, which waits for nobody. The row,
 * inserted by the handler's transaction, is the proof. The claim is not settled before the handler has succeeded,
 * because much commits early here, such as DDL and procedures. The last statement checks the handled row and commits.
 *
 * The session has some variables meanwhile: `@tc_name` is the lock that it holds, `@tc_idle` its own `wait_timeout`.
 */
export function mysqlMechanism<Tx>(engine: SqlEngine<Tx>, table: Table, idleTimeoutMs: number | null): Mechanism<Tx> {
  const { query } = engine;
  const look = (ids: Ids): Promise<InTheWay | undefined> => readCommitted(query, table, ids);

  /** Begins the transaction of a handler, unless a row or another transaction is in the way. */
  const begin = async (records: Records, request: ClaimRequest) => {
    const { ids } = records;
    const open = await engine.begin(toSteps(table, records, request, idleTimeoutMs), request);
    if ('inTheWay' in open) return open;
    return toClaim(open, request, {
      async record(send) {
        await send(settle(table, ids, request));
        await send(commitIfHandled(table, ids, request, idleTimeoutMs)).catch((error: unknown) => {
          throw readNumber(error) === errors.outOfRange ? new Error(rolledBack, { cause: error }) : error;
        });
      },
      // Both rows are committed, or neither is.
      look: () => look(ids.slice(0, 1)),
    });
  };

  return {
    claim: grantOnce(async (records, request) => {
      for (let tried = 1; ; tried += 1) {
        const begun = await begin(records, request).catch((error: unknown) => ({ failure: error as Error }));
        if ('tx' in begun) return begun;
        if ('inTheWay' in begun) {
          if (begun.inTheWay !== 'held') return toRefusal(begun.inTheWay);
          // The look needs a connection, and the pool may have no other one.
          await begun.ended;
        }
        const failure = 'failure' in begun ? begun.failure : undefined;
        if (isTimeout(failure)) throw failure;
        const found = await look(records.ids).catch((error: unknown) => {
          throw failure ?? error;
        });
        if (isHandled(found)) return toRefusal(found);
        if (failure === undefined) return inProgress;
        // A connection of the pool may have broken: the next one is tried.
        if (failure instanceof TransferCallbackError || tried === claimTries) throw failure;
      }
    }),
    read: (id, transfer) => readRecord(query, table, id, transfer),
    async forget(id, fingerprint) {
      // The update would wait for the transaction of a claim.
      const found = await look([id]);
      if (found === 'held' || found?.fingerprint !== fingerprint) return false;
      return endRecord(query, table, id, fingerprint);
    },
    tryAll: (records, request) => tryAll(engine, table, idleTimeoutMs, records, request),
  };
}

async function readRecord(query: Query, table: Table, id: string, transfer: string): Promise<StoreRecord> {
  // The lock first: it is free before the record can be read, and until then the row is locked.
  const [lock] = await query(readLock(table, transfer));
  const { holder, auto } = lock as Readonly<Record<'holder' | 'auto', number | bigint | string | null>>;
  if (Number(auto) !== 1) throw withoutAutocommit();
  // A role that may only read is refused the lock of the row.
  const found = await readCommitted(query, table, [id]).catch(() => readRow(query, table, id));
  if (isHandled(found)) return toHandledRecord(found);
  // The holder of the lock may have claimed the transfer alone.
  const isClaimed = id === transfer ? holder !== null : found !== undefined && found !== 'held' && isLive(found);
  if (holder !== null && (isClaimed || found === 'held')) return { state: 'claimed', by: `connection ${holder}` };
  return { state: found === 'held' ? 'claimed' : 'free' };
}

/**
 * Claims and settles once, and deletes the record. A proxy may swallow what is set for a session, and a cluster may
 * refuse the lock: that shows here, and not at the first payout.
 */
async function tryAll<Tx>(
  engine: SqlEngine<Tx>,
  table: Table,
  idleTimeoutMs: number | null,
  records: Records,
  request: ClaimRequest,
): Promise<void> {
  const { ids } = records;
  const steps = toSteps(table, records, request, idleTimeoutMs);
  const open = await engine.begin(
    {
      ...steps,
      async claim(send) {
        const inTheWay = await steps.claim(send);
        const [session] = await send(readSession(table, records.transfer));
        const { idle, held } = session as Readonly<Record<'idle' | 'held', number | bigint | string | null>>;
        if (Number(held) !== 1) throw lacking('`GET_LOCK`: the lock was not held in the next statement');
        if (idleTimeoutMs !== null && Number(idle) !== toSeconds(idleTimeoutMs)) {
          throw lacking('`SET wait_timeout`: it was not set in the next statement');
        }
        return inTheWay;
      },
    },
    request,
  );
  if ('inTheWay' in open) throw lacking('a claim of a new key');
  await open.commit(async (send) => {
    await send(settle(table, ids, request));
    await send(commitIfHandled(table, ids, request, idleTimeoutMs));
    // It undoes nothing that is committed.
    await send('ROLLBACK');
  });
  const found = await readCommitted(engine.query, table, ids);
  await engine.query(`DELETE FROM ${table.name} WHERE ${table.isId(ids)}`);
  if (!isHandled(found)) throw lacking('`SET autocommit`: the last statement has not committed');
}

function lacking(what: string): TransferCallbackError {
  return new TransferCallbackError('STORE_REPLY_UNEXPECTED', `The database lacks what a claim needs, ${what}.`);
}

/** What the handler's transaction begins with, and what undoes it. */
function toSteps(
  table: Table,
  { transfer, ids }: Records,
  request: ClaimRequest,
  idleTimeoutMs: number | null,
): ClaimSteps {
  let isUsable = true;
  // In their order in the table, as `prune` locks them.
  const insert = table.insert([...ids].sort(compareBytes), request, request.maxHeldMs ?? defaultHeldMs);
  return {
    async claim(send) {
      try {
        await send(takeLock(table, transfer, idleTimeoutMs));
      } catch (error) {
        const number = readNumber(error);
        if (number === errors.outOfRange) return 'held';
        isUsable = number !== errors.moreThanOneRow;
        throw isUsable ? error : withoutAutocommit(error);
      }
      try {
        await send(insert);
        return undefined;
      } catch (error) {
        const found = await readLocked(send, table, ids);
        if (isHandled(found)) {
          await send(restore(table, transfer, idleTimeoutMs));
          return found;
        }
        // After any other error the transaction may have ended.
        if (found === undefined || readNumber(error) !== errors.duplicateKey) throw error;
        await send(`${insert} ${takeOver(table, request)}`);
        return undefined;
      }
    },
    async undo(send) {
      // The idleTimeoutMs of the pool are not the store's to change.
      if (!isUsable) return;
      try {
        await send('ROLLBACK');
        // Otherwise tables that a handler has locked stay locked. MySQL prepares neither LOCK TABLES nor UNLOCK TABLES,
        // so a library that cannot send this statement could not lock either.
        await send('UNLOCK TABLES').catch(() => undefined);
        // Not if ROLLBACK has failed: it would commit.
        await send(restore(table, transfer, idleTimeoutMs));
      } catch (error) {
        // A connection that keeps the lock, or what was written, must not reach its next user.
        await send('KILL CONNECTION_ID()').catch(() => undefined);
        throw error;
      }
    },
  };
}

const rolledBack =
  'The transaction was rolled back before the handler had ended: by the handler, or by an error that the handler has not rethrown, such as a deadlock.';

function withoutAutocommit(cause?: unknown): TransferCallbackError {
  return new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'A connection of the pool was not usable: `autocommit` is 0 on it. Set it to 1 for the connections of this pool.',
    { cause },
  );
}

/** Reads the number of the server's error, however a library wraps it. */
function readNumber(error: unknown): number | undefined {
  for (const { errno, message } of listCauses(error)) {
    if (typeof errno === 'number' && errno > 0) return errno;
    // Prisma has it in its text alone.
    const [, code] = /Code: `(\d+)`/.exec(String(message)) ?? [];
    if (code !== undefined) return Number(code);
  }
  return undefined;
}

/**
 * Takes the lock, and fails by overflow if another session has it. Releases the lock that an earlier claim may have
 * left on this connection. The server ends a session that sends nothing for `wait_timeout`, and with it the transaction
 * and the lock.
 */
function takeLock(table: Table, id: string, idleTimeoutMs: number | null): string {
  const name = lockName(table, id);
  return `SET ${[
    `@tc_left = ${releaseHeld}`,
    // Two rows, and an error of its own, if `autocommit` is 0: then what is sent outside of transactions is not
    // committed.
    '@tc_auto = (SELECT 1 UNION ALL SELECT 2 FROM DUAL WHERE @@autocommit = 0)',
    // Last of what may fail: a lock that is taken by a statement that fails is kept.
    `@tc_got = ${failUnless(`COALESCE(GET_LOCK(${name}, 0), 0)`)}`,
    `@tc_name = ${name}`,
    ...(idleTimeoutMs === null ? [] : [`@tc_idle = ${ownIdle}`, `wait_timeout = ${toSeconds(idleTimeoutMs)}`]),
    // After some errors, such as a deadlock, the server has rolled back the whole transaction. If the handler goes on,
    // its next statement would otherwise be committed by itself.
    'autocommit = 0',
  ].join(', ')}`;
}

/**
 * Follows the insertion, and takes over rows that are not handled, or that have ended. The lock was free: no handler
 * works at them.
 */
function takeOver({ syntax }: Table, request: ClaimRequest): string {
  const { token, event = '', externalId = '', maxHeldMs = defaultHeldMs } = request;
  const { literal, now } = syntax;
  return `ON DUPLICATE KEY UPDATE token = ${literal(token)}, event = ${literal(event)}, external_id = ${literal(externalId)},
  fingerprint = NULL, claimed_at = ${now}, handled_at = NULL, expires_at = ${now} + ${maxHeldMs}`;
}

function settle(table: Table, ids: Ids, request: ClaimRequest): string {
  return `UPDATE ${table.name} SET ${table.handledValues(request)} WHERE ${table.isId(ids)} AND ${table.isHeld(request.token)}`;
}

/**
 * The last statement of the handler's transaction. Fails by overflow unless each handled row is there, and otherwise
 * commits: `autocommit` from 0 to 1 does. So nothing comes between the two, whatever the handler has left running.
 */
function commitIfHandled(table: Table, ids: Ids, { token }: ClaimRequest, idleTimeoutMs: number | null): string {
  return `SET @tc_held = (SELECT ${failUnless(`(COUNT(*) = ${ids.length})`)} FROM ${table.name}
  WHERE ${table.isId(ids)} AND token = ${table.syntax.literal(token)} AND fingerprint IS NOT NULL),
  @tc_left = RELEASE_LOCK(@tc_name), @tc_name = NULL${restoreIdle(idleTimeoutMs)}, autocommit = 0, autocommit = 1`;
}

/**
 * Puts the session back after ROLLBACK, or before anything was written. Also after a first statement that has taken the
 * lock, and not noted its name.
 */
function restore(table: Table, id: string, idleTimeoutMs: number | null): string {
  return `SET @tc_left = ${releaseHeld}, @tc_got = RELEASE_LOCK(${lockName(table, id)}), @tc_name = NULL${restoreIdle(idleTimeoutMs)}, autocommit = 1`;
}

const releaseHeld = 'IF(@tc_name IS NULL, 0, RELEASE_LOCK(@tc_name))';
/** Once for each session: later its `wait_timeout` may be the one of a claim. MariaDB makes a decimal of COALESCE. */
const ownIdle = 'CAST(COALESCE(@tc_idle, @@wait_timeout) AS UNSIGNED)';

function restoreIdle(idleTimeoutMs: number | null): string {
  return idleTimeoutMs === null ? '' : `, wait_timeout = ${ownIdle}`;
}

/** Renders an expression that is out of range, and so an error, if a number is 0 and not 1. */
function failUnless(oneOrZero: string): string {
  return `9223372036854775807 + (1 - ${oneOrZero})`;
}

/** The whole server shares the names of locks, which have at most 64 characters. */
function lockName(table: Table, id: string): string {
  const own = toHex(`.${table.name}.${id}`);
  return table.hasSchema ? `SHA2('${own}', 224)` : `SHA2(CONCAT(COALESCE(HEX(DATABASE()), '-'), '${own}'), 224)`;
}

/** MySQL counts whole seconds. */
function toSeconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}

/** Reads back what the first statement of a claim has set. */
function readSession(table: Table, id: string): string {
  return `SELECT @@wait_timeout AS idle, IS_USED_LOCK(${lockName(table, id)}) = CONNECTION_ID() AS held`;
}

function readLock(table: Table, id: string): string {
  return `SELECT IS_USED_LOCK(${lockName(table, id)}) AS holder, @@autocommit AS auto`;
}

/** Reads the row as it is committed, outside of a transaction. */
async function readCommitted(query: Query, table: Table, ids: Ids): Promise<InTheWay | undefined> {
  // It is 0 on a connection that still has the transaction of a claim. A read there would see a record that is not
  // committed, and its lock would stay, on the row or on the gap in its place.
  const endsItself = '@@autocommit = 1';
  try {
    return table.toRow(await query(`${table.look(ids, endsItself)} ${lockNowait}`));
  } catch (error) {
    const { lockWaitTimeout, lockNotAvailable } = errors;
    if ([lockWaitTimeout, lockNotAvailable].includes(readNumber(error) ?? 0)) return 'held';
    throw error;
  }
}

/** Reads the row within the transaction, and keeps others from changing it. */
async function readLocked(send: Send, table: Table, ids: Ids): Promise<Row | undefined> {
  return table.toRow(await send(`${table.look(ids)} ${lockNowait}`).catch(() => []));
}

function compareBytes(one: string, other: string): number {
  return Buffer.from(one).compare(Buffer.from(other));
}
