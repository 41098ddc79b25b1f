import { TransferCallbackError } from '../../lib/errors.js';
import type { Claim, ClaimReply, ClaimRequest } from '../../core/store.js';
import { isLive, type LockReply, type Row, type Statements } from './statements.js';
import type { OpenTransaction, SqlEngine } from './transaction.js';

type Query = SqlEngine<never>['query'];
type Claimer<Tx> = (id: string, request: ClaimRequest) => Promise<ClaimReply<Tx>>;

/** A claim that the database has granted. */
interface Granted<Tx> {
  readonly claim: Claim<Tx>;
  /** Resolves when the transaction of the claim has ended, if it has one. */
  readonly ended?: Promise<unknown>;
}

/**
 * Claims callbacks in PostgreSQL, by a lock. The record is inserted by the first statement of the handler's transaction,
 * and counts as soon as that is committed: with the handler's writes, whoever commits it.
 */
export function lockClaims<Tx>(engine: SqlEngine<Tx>, sql: Statements, idleTimeoutMs: number | null): Claimer<Tx> {
  const { query } = engine;
  return toClaimer(query, sql, async (id, request) => {
    const mark = crypto.randomUUID();
    const first = { sql: sql.lock(id, request, mark, idleTimeoutMs), isGranted };
    const open = await engine.begin(first, request);
    if (!('row' in open)) return holdTransaction({ id, request, open, mark, query, sql });
    const row = open.row as LockReply | undefined;
    if (row === undefined || row.token === null) return undefined;
    // Until then this transaction holds the lock, which the next attempt needs.
    if (!isLive(row)) await open.ended;
    return row;
  });
}

function isGranted(row: unknown): boolean {
  return Number((row as LockReply | undefined)?.granted) === 1;
}

/**
 * Claims callbacks in MySQL, by a lease: its server may keep the lock of a machine that has vanished for hours. The claim
 * is a row, committed before the handler's transaction begins. The settle is an update of that row within the transaction,
 * and fails if the row has passed to another delivery: of two handlers of one callback only one can commit.
 */
export function leaseClaims<Tx>(engine: SqlEngine<Tx>, sql: Statements): Claimer<Tx> {
  const { query } = engine;
  return toClaimer(query, sql, async (id, request) => {
    // Fails if there is a row of this id: MySQL returns no rows of an INSERT.
    await query(sql.claim(id, request));
    const mark = crypto.randomUUID();
    const open = (await engine.begin({ sql: sql.mark(mark, request) }, request)) as OpenTransaction<Tx>;
    return holdTransaction({ id, request, open, mark, query, sql });
  });
}

/** Claims callbacks in SQLite, by a lease. Their handlers have no transaction. */
export function plainClaims(query: Query, sql: Statements): Claimer<undefined> {
  return toClaimer(query, sql, async (id, request) => {
    const [inserted] = await query(sql.claim(id, request));
    const row = inserted === undefined ? await readRow(query, sql, id) : undefined;
    if (inserted === undefined && !isHeldBy(row, request.token)) return row;
    return { claim: plainClaim(id, request, query, sql) };
  });
}

/** Reads the row of a callback. */
export async function readRow(query: Query, sql: Statements, id: string): Promise<Row | undefined> {
  const [row] = await query(sql.look(id));
  return row as Row | undefined;
}

/** How often a claim is tried while rows that have ended are in its way. */
const tries = 3;

/**
 * Makes `claim` of a store. `attempt` tries once, and resolves with the row that is in its way, if it sees one. A claim that
 * is sent twice is one.
 */
function toClaimer<Tx>(
  query: Query,
  sql: Statements,
  attempt: (id: string, request: ClaimRequest) => Promise<Granted<Tx> | Row | undefined>,
): Claimer<Tx> {
  const held = new Map<string, { token: string; claim: Claim<Tx> }>();
  return async (id, request) => {
    const { token } = request;
    const own = held.get(id);
    if (own?.token === token) return { state: 'claimed', claim: own.claim };
    let failure: unknown;
    for (let tried = 0; tried < tries; tried += 1) {
      failure = undefined;
      // A server that refuses every write may still show a success. And in MySQL a claim is refused by a failure.
      const found = await attempt(id, request).catch((error: unknown) => {
        failure = error;
        return readRow(query, sql, id).catch(() => {
          throw error;
        });
      });
      if (found !== undefined && 'claim' in found) {
        const { claim, ended } = found;
        if (ended !== undefined) {
          held.set(id, { token, claim });
          void ended.then(() => {
            if (held.get(id)?.claim === claim) held.delete(id);
          });
        }
        return { state: 'claimed', claim };
      }
      // Another delivery holds the lock, or has just released its claim: the caller claims again.
      if (found === undefined && (failure === undefined || sql.dialect === 'postgres')) break;
      // A claim of this delivery has no transaction: the reply to it was lost. It is cleared.
      if (found !== undefined && isLive(found) && !isHeldBy(found, token)) return toReply(found);
      // In MySQL concurrent claims of a row that has ended may fail by a deadlock. The next attempt tells.
      await query(sql.clear(id, request)).catch(() => undefined);
    }
    if (failure !== undefined) throw failure as Error;
    return { state: 'in_progress' };
  };
}

function toReply({ fingerprint }: Row): Exclude<ClaimReply, { state: 'claimed' }> {
  return fingerprint === null ? { state: 'in_progress' } : { state: 'settled', fingerprint };
}

function isHeldBy(row: Row | undefined, token: string): boolean {
  return row?.token === token && row.fingerprint === null && isLive(row);
}

/** A claim whose transaction has begun. */
interface OpenClaim<Tx> {
  readonly id: string;
  readonly request: ClaimRequest;
  readonly open: OpenTransaction<Tx>;
  readonly mark: string;
  readonly query: Query;
  readonly sql: Statements;
}

function holdTransaction<Tx>(opened: OpenClaim<Tx>): Granted<Tx> {
  const { id, request, open, query, sql } = opened;
  const isRow = sql.dialect === 'mysql';
  const claimedAt = performance.now();
  let state: 'open' | 'settled' | 'ended' = 'open';
  const end = (): void => {
    if (state === 'open') state = 'ended';
  };
  const rollBack = (): Promise<void> => {
    // Before the reply to the ROLLBACK: another delivery may have the claim by then.
    end();
    return open.rollback();
  };
  // The receiver renews no longer: a handler that never ends must not keep its connection.
  const startLapse = (): NodeJS.Timeout => setTimeout(() => void rollBack(), request.leaseMs).unref();
  let lapse = startLapse();
  const ended = open.ended.then(() => {
    clearTimeout(lapse);
    end();
  });
  const claim: Claim<Tx> = {
    tx: open.tx,
    async renew() {
      if (state !== 'open') return false;
      clearTimeout(lapse);
      lapse = startLapse();
      if (!isRow) return true;
      await query(sql.renew(id, request));
      const row = await readRow(query, sql, id);
      if (isHeldBy(row, request.token)) return true;
      // What is lost can no longer be committed. A record of this delivery has just been committed.
      if (row?.token !== request.token || row.fingerprint === null) void rollBack();
      return false;
    },
    async settle() {
      if (state !== 'settled') await commit(opened, performance.now() - claimedAt, state === 'ended');
      state = 'settled';
      return { overlapped: false };
    },
    async release() {
      await rollBack();
      if (isRow && state !== 'settled') await query(sql.release(id, request));
    },
  };
  return { claim, ended };
}

/** Commits the handler's writes with the record. If that fails, rejects with what has kept it from being recorded. */
async function commit<Tx>(
  { id, request, open, mark, query, sql }: OpenClaim<Tx>,
  heldMs: number,
  hasLapsed: boolean,
): Promise<void> {
  try {
    await open.commit(sql.settle(id, request, mark, heldMs));
  } catch (cause) {
    const row = await readRow(query, sql, id).catch(() => undefined);
    const isOwn = row?.token === request.token;
    // If it is recorded, only the reply to the COMMIT was lost.
    if (!isOwn || row.fingerprint === null) {
      if (!hasLapsed && (isOwn || row === undefined)) throw cause;
      const message =
        'The claim has lapsed or passed to another delivery. The writes of this handler were rolled back.';
      throw new TransferCallbackError('LEASE_LOST', message, { cause });
    }
  }
  // Not awaited: if it fails, `prune` deletes the mark.
  if (sql.dialect === 'mysql') query(sql.unmark(mark)).catch(() => undefined);
}

function plainClaim(id: string, request: ClaimRequest, query: Query, sql: Statements): Claim {
  let result: { overlapped: boolean } | undefined;
  return {
    tx: undefined,
    async renew() {
      await query(sql.renew(id, request));
      return isHeldBy(await readRow(query, sql, id), request.token);
    },
    async settle() {
      if (result !== undefined) return result;
      await query(sql.settleInTime(id, request));
      const row = await readRow(query, sql, id);
      const overlapped = row?.token !== request.token || row.fingerprint === null;
      if (overlapped) {
        await query(sql.claim(id, request));
        await query(sql.settleLate(id, request));
      }
      return (result = { overlapped });
    },
    async release() {
      await query(sql.release(id, request));
    },
  };
}
