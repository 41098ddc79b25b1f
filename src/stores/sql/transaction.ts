import type { Claim, ClaimRequest } from '../../core/store.js';
import { setBackgroundTimer, type Timer } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { Mechanism, Query, Records, Refusal } from './claims.js';
import { endsWithin, lend, type LendRules } from './lend.js';
import type { Row } from './table.js';

/** What the store needs of a library. */
export interface SqlEngine<Tx> {
  /** Sends one statement outside of any transaction. */
  readonly query: Query;
  /** Begins a transaction, within the times of the request. */
  begin(steps: ClaimSteps, request: ClaimRequest): Promise<OpenTransaction<Tx> | RefusedTransaction>;
}

/**
 * Where a statement stands in a transaction of PostgreSQL, and what goes with it in one message:
 *
 * | place      | the statement                    | `pgStore`    | other libraries, by `postgresEnds` |
 * | ---------- | -------------------------------- | ------------ | ---------------------------------- |
 * | `first`    | inserts the record               | BEGIN before |                                    |
 * | `look`     | reads what has refused the claim | COMMIT after |                                    |
 * | `last`     | checks the proof                 | COMMIT after | COMMIT after, and BEGIN by some    |
 * | `rollback` | ROLLBACK                         | not used     | BEGIN after by some                |
 *
 * In MySQL no statement has a place: `autocommit` begins and commits.
 */
export type StatementPlace = 'first' | 'look' | 'last' | 'rollback';

/** Sends a statement of the store within a transaction, and resolves with its rows. */
export type Send = (sql: string, place?: StatementPlace) => Promise<readonly unknown[]>;

/** What is in the way of a claim: a row, or a claim that another delivery holds. */
export type InTheWay = Row | 'held';

/** How a database claims a callback within a transaction. */
export interface ClaimSteps {
  /** Sends the first statements. Resolves with what is in the way, or with undefined if the claim is granted. */
  claim(send: Send): Promise<InTheWay | undefined>;
  /**
   * Rolls back, and restores the connection. Called if `claim` or a later statement has failed. The transaction of a
   * library calls it again if it rejects, unless the connection has ended.
   */
  undo(send: Send): Promise<unknown>;
}

/** A transaction whose claim was refused. */
export interface RefusedTransaction {
  readonly inTheWay: InTheWay;
  /** Resolves when it was rolled back. */
  readonly ended: Promise<unknown>;
}

/** Sends the statements that record a success. The last one commits, unless the library does after it. */
export type RecordSuccess = (send: Send) => Promise<unknown>;

/** A transaction that has begun, and ends later. */
export interface OpenTransaction<Tx> {
  /** The library's transaction object, for the handler. */
  readonly tx: Tx;
  /** Resolves when the transaction has ended, either way. */
  readonly ended: Promise<unknown>;
  /** Calls `record`. If it fails, rolls back and rejects. */
  commit(record: RecordSuccess): Promise<void>;
  /** Rolls back. Never rejects: what a server cannot be told, it does by itself when it loses the connection. */
  rollback(): Promise<void>;
}

/** How long a call waits for its database if its caller does not say, in milliseconds. */
export const patienceMs = 30_000;
/** How long a transaction may last if the caller of `claim` does not say. */
export const defaultHeldMs = 120_000;

// Made once: the stack of an error costs as much as a statement.
export const rolledBack = new Error('The transaction of the handler was rolled back.');
export const stillRunning = new Error(
  'What the handler had left running did not end: its transaction was rolled back.',
);

/** How long a ROLLBACK may wait for the queries that a handler has left running, in milliseconds. */
export const rollbackMs = 500;

/** A connection that the store has taken out of a pool, and on which it begins and ends a transaction itself. */
export interface OwnConnection<Tx extends object> {
  /** What is lent to the handler. */
  readonly target: Tx;
  readonly rules: LendRules;
  readonly send: Send;
  /** Called if the connection ends before it goes back. */
  onEnd: (error: Error) => void;
  /** Returns the connection to its pool. */
  giveBack(): void;
  /** Rolls back, and then returns the connection to its pool, or ends it if the rollback fails. Never rejects. */
  rollBack(steps: ClaimSteps): Promise<void>;
}

/** Begins a transaction. What the handler has left running is waited for, for at most half of `timeoutMs`. */
export async function beginOwn<Tx extends object>(
  connection: OwnConnection<Tx>,
  steps: ClaimSteps,
  timeoutMs: number,
): Promise<OpenTransaction<Tx> | RefusedTransaction> {
  let broken: Error | undefined;
  connection.onEnd = (error) => {
    broken = error;
  };
  try {
    const inTheWay = await steps.claim(connection.send);
    if (inTheWay !== undefined) {
      connection.giveBack();
      return { inTheWay, ended: Promise.resolve() };
    }
    // A process that was frozen reads the reply and the end of its connection in one turn.
    if (broken !== undefined) throw broken;
    return lendOwn(connection, steps, timeoutMs / 2);
  } catch (error) {
    await connection.rollBack(steps);
    throw error;
  }
}

/** Lends a transaction. It ends once: by what comes first of `commit`, `rollback` and the end of its connection. */
function lendOwn<Tx extends object>(
  connection: OwnConnection<Tx>,
  steps: ClaimSteps,
  idleWaitMs: number,
): OpenTransaction<Tx> {
  const loan = lend(connection.target, connection.rules);
  let hasEnded!: () => void;
  const ended = new Promise<void>((resolve) => {
    hasEnded = resolve;
  });
  const undo = async (cause: unknown): Promise<never> => {
    loan.end(false);
    await connection.rollBack(steps);
    hasEnded();
    throw cause;
  };
  const commit = async (record: RecordSuccess): Promise<void> => {
    loan.end(true);
    try {
      const running = loan.idle();
      if (running !== undefined && !(await endsWithin(idleWaitMs, running))) throw stillRunning;
      await record(connection.send);
    } catch (error) {
      return undo(error);
    }
    connection.giveBack();
    hasEnded();
  };
  let ending: Promise<void> | undefined;
  /** Rolls back, unless it is ending already. A later `commit` rejects with the cause. */
  const endBy = (cause: Error): Promise<void> => {
    ending ??= undo(cause);
    return ending.catch(() => undefined);
  };
  connection.onEnd = (error) => void endBy(error);
  return {
    tx: loan.tx,
    ended,
    commit: (record) => (ending ??= commit(record)),
    rollback: () => endBy(rolledBack),
  };
}

/** Makes `claim` of a transactional store. A claim that is sent twice is one. */
export function grantOnce<Tx>(
  claim: (records: Records, request: ClaimRequest) => Promise<TransactionClaim<Tx> | Refusal>,
): Mechanism<Tx>['claim'] {
  // At most as many as the pool has connections.
  const held: { readonly ids: string; readonly token: string; readonly claim: Claim<Tx> }[] = [];
  return async (records, request) => {
    const { token } = request;
    const ids = records.ids.join();
    const own = held.find((each) => each.token === token && each.ids === ids);
    if (own !== undefined) return { state: 'claimed', claim: own.claim };
    const granted = await claim(records, request);
    if ('state' in granted) return granted;
    const entry = { ids, token, claim: granted };
    held.push(entry);
    void granted.ended.then(() => held.splice(held.indexOf(entry), 1));
    return { state: 'claimed', claim: granted };
  };
}

/** How the database records the success of a claim, and shows it. */
interface Proof {
  /** Its last statement fails unless the claim is held. */
  readonly record: RecordSuccess;
  /** Reads the row as it is committed. */
  readonly look: () => Promise<InTheWay | undefined>;
}

/** A claim that lasts as long as the transaction of its handler. */
export interface TransactionClaim<Tx> extends Claim<Tx> {
  /** Resolves when the transaction has ended. */
  readonly ended: Promise<unknown>;
}

/** Makes the claim of a handler whose transaction has begun. */
export function toClaim<Tx>(
  transaction: OpenTransaction<Tx>,
  { token, leaseMs }: ClaimRequest,
  proof: Proof,
): TransactionClaim<Tx> {
  let state: 'held' | 'handled' | 'ended' = 'held';
  const end = (): void => {
    if (state === 'held') state = 'ended';
  };
  const release = (): Promise<void> => {
    // Before the reply to the ROLLBACK: another delivery may have the claim by then.
    end();
    return transaction.rollback();
  };
  /** The receiver renews no longer: a handler that never ends must not keep its connection. */
  const startLapse = (): Timer => setBackgroundTimer(() => void release(), leaseMs);
  let lapse = startLapse();
  return {
    tx: transaction.tx,
    ended: transaction.ended.then(() => {
      clearTimeout(lapse);
      end();
    }),
    renew() {
      const isHeld = state === 'held';
      if (isHeld) {
        clearTimeout(lapse);
        lapse = startLapse();
      }
      return Promise.resolve(isHeld);
    },
    async settle() {
      if (state !== 'handled') await commitOrLook(transaction, token, proof, state === 'ended');
      state = 'handled';
      return { overlapped: false };
    },
    release,
  };
}

/**
 * Commits the handler's writes with the record. If that fails, the row tells what has become of them:
 *
 * | the row                | the claim     | they were                             |
 * | its own, and handled   |               | committed: only the reply was lost    |
 * | of another delivery    |               | rolled back: LEASE_LOST               |
 * | none, or not certain   | had lapsed    | rolled back: LEASE_LOST               |
 * | none, or not certain   | had not       | rolled back: rejects with the cause   |
 */
async function commitOrLook(
  transaction: OpenTransaction<unknown>,
  token: string,
  { record, look }: Proof,
  hasLapsed: boolean,
): Promise<void> {
  try {
    await transaction.commit(record);
  } catch (cause) {
    const found = await look().catch(() => undefined);
    const row = found === 'held' ? undefined : found;
    const isOwn = row?.token === token;
    if (isOwn && row.fingerprint !== null) return;
    if (!hasLapsed && (isOwn || row === undefined)) throw cause;
    const message = 'The claim has lapsed or passed to another delivery. The writes of this handler were rolled back.';
    throw new TransferCallbackError('LEASE_LOST', message, { cause });
  }
}
