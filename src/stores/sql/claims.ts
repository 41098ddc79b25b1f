import { TransferCallbackError } from '../../core/errors.js';
import type { Claim, ClaimRequest, Lease } from '../../core/store.js';
import { isLive, type Row, type Statements } from './statements.js';
import { claimOrLook, defaultHeldMs, type OpenTransaction, type Refusal, type SqlEngine } from './transaction.js';

type Claimer<Tx> = (id: string, request: ClaimRequest) => Promise<Claim<Tx>>;

/**
 * Claims callbacks whose handlers run in a transaction. The claim is a row, committed before the transaction begins, so
 * that every process sees it. The settle is an update of that row within the transaction, and fails if the row has
 * passed to another delivery: of two handlers of one callback only one can commit.
 */
export function transactionClaims<Tx>(
  engine: SqlEngine<Tx>,
  sql: Statements,
  idleTimeoutMs: number | null,
): Claimer<Tx> {
  const held = new Map<string, { token: string; lease: Lease<Tx> }>();
  return async (id, request) => {
    const known = held.get(id);
    if (known?.token === request.token) return { state: 'claimed', lease: known.lease };
    const mark = crypto.randomUUID();
    const statements = {
      claim: sql.claim(id, request),
      look: sql.look(id),
      mark: sql.mark(mark, request, idleTimeoutMs),
    };
    return claimAgain(engine, sql.clear(id, request), async () => {
      const begun = await engine.begin(statements, request).catch((error: unknown) => {
        // The claim may have been granted, or be granted yet. If this fails, it ends by itself.
        engine.query(sql.release(id, request)).catch(() => undefined);
        throw error;
      });
      // A row of this delivery has no transaction: the reply to its claim was lost. It is cleared.
      if ('row' in begun) return isHeldBy(begun.row, request.token) ? begun : toReply(begun);
      const lease = transactionLease({ id, request, mark, open: begun, query: engine.query, sql });
      held.set(id, { token: request.token, lease });
      void begun.ended.then(() => {
        if (held.get(id)?.lease === lease) held.delete(id);
      });
      return { state: 'claimed', lease };
    });
  };
}

/** Claims callbacks whose handlers have no transaction. */
export function leaseClaims(query: SqlEngine<undefined>['query'], sql: Statements): Claimer<undefined> {
  return async (id, request) =>
    claimAgain({ query }, sql.clear(id, request), async () => {
      const statements = { claim: sql.claim(id, request), look: sql.look(id) };
      const refusal = await claimOrLook(query, statements, (rows) => rows.length > 0);
      if (refusal !== undefined && !isHeldBy(refusal.row, request.token)) return toReply(refusal);
      return { state: 'claimed', lease: plainLease(id, request, query, sql) };
    });
}

/** How often a claim is tried while rows that have ended are in its way. */
const tries = 3;

/** Claims, and again if the row in the way has ended: clears it before. */
async function claimAgain<Tx>(
  { query }: Pick<SqlEngine<Tx>, 'query'>,
  clear: string,
  claim: () => Promise<Claim<Tx> | Refusal>,
): Promise<Claim<Tx>> {
  let failure: unknown;
  for (let tried = 0; tried < tries; tried += 1) {
    const result = await claim();
    if ('state' in result) return result;
    ({ failure } = result);
    // The claim in the way has just been released: the caller claims again.
    if (result.row === undefined && failure === undefined) break;
    // In MySQL concurrent claims of a row that has ended may fail by a deadlock. The next one tells.
    await query(clear).catch(() => undefined);
  }
  if (failure !== undefined) throw failure as Error;
  return { state: 'in_progress' };
}

/** Returns the reply that a live row gives to a claim, and `refusal` itself if the row has ended. */
function toReply(refusal: Refusal): Exclude<Claim, { state: 'claimed' }> | Refusal {
  const { row } = refusal;
  if (row === undefined || !isLive(row)) return refusal;
  return row.fingerprint === null ? { state: 'in_progress' } : { state: 'settled', fingerprint: row.fingerprint };
}

function isHeldBy(row: Row | undefined, token: string): boolean {
  return row?.token === token && row.fingerprint === null && isLive(row);
}

/** A claim whose transaction has begun. */
interface TransactionClaim<Tx> {
  readonly id: string;
  readonly request: ClaimRequest;
  readonly mark: string;
  readonly open: OpenTransaction<Tx>;
  readonly query: SqlEngine<Tx>['query'];
  readonly sql: Statements;
}

function transactionLease<Tx>(claim: TransactionClaim<Tx>): Lease<Tx> {
  const { id, request, open, query, sql } = claim;
  let isSettled = false;
  // The receiver renews the lease no longer, and a handler that never ends must not keep its connection.
  const end = setTimeout(() => void open.rollback(), request.maxHeldMs ?? defaultHeldMs).unref();
  void open.ended.then(() => {
    clearTimeout(end);
  });
  return {
    tx: open.tx,
    async renew() {
      await query(sql.renew(id, request));
      const [row] = (await query(sql.look(id))) as readonly Row[];
      if (isHeldBy(row, request.token)) return true;
      // What is lost can no longer be committed. A record of this delivery has just been committed.
      if (row?.token !== request.token || row.fingerprint === null) void open.rollback();
      return false;
    },
    async settle() {
      if (!isSettled) await commit(claim);
      isSettled = true;
      return { overlapped: false };
    },
    async release() {
      await open.rollback();
      if (!isSettled) await query(sql.release(id, request));
    },
  };
}

/** Commits the handler's writes with the record. If that fails, rejects with what has kept it from being recorded. */
async function commit<Tx>({ id, request, mark, open, query, sql }: TransactionClaim<Tx>): Promise<void> {
  try {
    await open.commit(sql.settle(id, request, mark));
  } catch (cause) {
    const [row] = (await query(sql.look(id)).catch(() => [{ token: request.token }])) as readonly Partial<Row>[];
    if (row?.token === request.token) throw cause;
    const message = 'The claim has passed to another delivery, so the writes of this handler were rolled back.';
    throw new TransferCallbackError('LEASE_LOST', message, { cause });
  }
  const unmark = sql.unmark(mark);
  // Not awaited: if it fails, `prune` deletes the mark.
  if (unmark !== undefined) query(unmark).catch(() => undefined);
}

function plainLease(id: string, request: ClaimRequest, query: SqlEngine<undefined>['query'], sql: Statements): Lease {
  let result: { overlapped: boolean } | undefined;
  const look = async (): Promise<Row | undefined> => ((await query(sql.look(id))) as readonly Row[])[0];
  return {
    tx: undefined,
    async renew() {
      await query(sql.renew(id, request));
      return isHeldBy(await look(), request.token);
    },
    async settle() {
      if (result !== undefined) return result;
      await query(sql.settleInTime(id, request));
      const row = await look();
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
