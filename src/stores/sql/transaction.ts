import type { ClaimRequest } from '../../core/store.js';
import { pause, waitForSockets } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { Loan } from './lend.js';
import type { Row } from './table.js';

/** What the store needs of a library. */
export interface SqlEngine<Tx> {
  /** Sends one statement outside of any transaction. */
  readonly query: (sql: string) => Promise<readonly unknown[]>;
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

/** A transaction that has begun, and ends later. */
export interface OpenTransaction<Tx> {
  /** The library's transaction object, for the handler. */
  readonly tx: Tx;
  /** Resolves when the transaction has ended, either way. */
  readonly ended: Promise<unknown>;
  /**
   * Calls `record`, whose last statement commits, unless the library does after it. If it fails, rolls back and
   * rejects.
   */
  commit(record: (send: Send) => Promise<unknown>): Promise<void>;
  /** Rolls back. Never rejects: what a server cannot be told, it does by itself when it loses the connection. */
  rollback(): Promise<void>;
}

/** How long a transaction may take, in milliseconds. */
export interface TransactionTimes {
  /** How long it may wait for a connection. */
  queueMs: number;
}

/** How long a call waits for its database if its caller does not say, in milliseconds. */
export const patienceMs = 30_000;
/** How long a transaction may last if the caller of `claim` does not say. */
export const defaultHeldMs = 120_000;

/** How a library runs a transaction. */
export interface TransactionRunner<Tx> {
  /**
   * Begins, awaits `work`, and commits. Rolls back and rejects if `work` rejects, also because the claim was refused. A
   * second call of `work` rejects. Nothing more is sent once its promise has settled.
   */
  run(work: (tx: Tx) => Promise<void>): PromiseLike<unknown>;
  /** Sends a statement within the transaction, and resolves with its rows. */
  send(sql: string, tx: Tx, place?: StatementPlace): Promise<readonly unknown[]>;
  /** Lends the transaction to a handler. */
  lend(tx: Tx): Loan<Tx>;
}

/**
 * Turns `transaction(work)`, as every library has it, inside out: resolves when the claim is granted or refused, and
 * ends the transaction later, by `commit` or `rollback`.
 *
 *     library  begins ── work ──────────────────────────────────────────────────▶ commits, or rolls back ─▶ `ended`
 *     store               claim ─▶ lend ─ ─ ─ ─ ─ decided ─▶ wait for what is left ─▶ record
 *     caller                        tx ─▶ handler ─▶ commit(record) or rollback()
 *
 * What the handler has left running is waited for, for at most half of `timeoutMs`: the other half is for the COMMIT.
 */
export function turnTransaction<Tx>(
  runner: TransactionRunner<Tx>,
  steps: ClaimSteps,
  timeoutMs: number,
): Promise<OpenTransaction<Tx> | RefusedTransaction> {
  return new Promise((resolve, reject) => {
    new TurnedTransaction(runner, steps, timeoutMs / 2, resolve, reject);
  });
}

type RecordSuccess = (send: Send) => Promise<unknown>;

class TurnedTransaction<Tx> {
  readonly #runner: TransactionRunner<Tx>;
  readonly #steps: ClaimSteps;
  readonly #idleWaitMs: number;
  readonly #resolve: (opened: OpenTransaction<Tx> | RefusedTransaction) => void;
  readonly #done: Promise<void>;
  readonly #ended: Promise<unknown>;
  /** Rejects if the transaction has failed, and its connection is kept for a statement that still runs on it. */
  readonly #failed: Promise<never>;
  /** Tells the caller that the transaction has failed, before its connection goes back. */
  #fail!: (error: Error) => void;
  #isRecorded = false;
  #isCalled = false;
  /** Whether the library has ended the transaction. The connection may have another user then. */
  #isOver = false;
  /** Why the transaction failed. */
  #failure: unknown;

  constructor(
    runner: TransactionRunner<Tx>,
    steps: ClaimSteps,
    idleWaitMs: number,
    resolve: (opened: OpenTransaction<Tx> | RefusedTransaction) => void,
    reject: (error: unknown) => void,
  ) {
    this.#runner = runner;
    this.#steps = steps;
    this.#idleWaitMs = idleWaitMs;
    this.#resolve = resolve;
    this.#failed = new Promise((_, fail) => {
      this.#fail = fail;
    });
    // Changes nothing if `#work` has resolved.
    this.#failed.catch(reject);
    this.#done = this.#run();
    this.#ended = this.#done.then(() => {
      // Changes nothing if `#work` has resolved.
      reject(neverCalled);
    }, reject);
  }

  async #run(): Promise<void> {
    try {
      await this.#runner.run((tx) => this.#callOnce(tx));
    } finally {
      this.#isOver = true;
    }
  }

  async #callOnce(tx: Tx): Promise<void> {
    // A library may repeat a transaction whose COMMIT has failed. The store would never end a second one.
    if (this.#isCalled) throw new Error(calledAgain, { cause: this.#failure });
    this.#isCalled = true;
    try {
      await this.#work(tx);
    } catch (error) {
      this.#failure = error;
      if (!(error instanceof NothingToUndo)) await this.#undo(tx, error);
      throw error;
    }
  }

  async #work(tx: Tx): Promise<void> {
    const send: Send = (sql, place) => this.#runner.send(sql, tx, place);
    const inTheWay = await this.#steps.claim(send);
    if (inTheWay !== undefined) {
      this.#resolve({ inTheWay, ended: this.#ended });
      throw refused;
    }
    const loan = this.#runner.lend(tx);
    const record = await this.#lendUntilDecided(loan);
    if (this.#isOver) throw rolledBack;
    if (!(await isIdleWithin(this.#idleWaitMs, loan))) {
      loan.end(false);
      await this.#undo(tx, stillRunning);
      this.#fail(stillRunning);
      // The end of a nested transaction is a statement, which must not reach the next user of the connection.
      await isIdleWithin(defaultHeldMs, loan);
      throw new NothingToUndo(stillRunning.message);
    }
    if (record === undefined) throw rolledBack;
    await record(send).catch((error: unknown) => {
      loan.end(false);
      throw error;
    });
    this.#isRecorded = true;
  }

  #lendUntilDecided(loan: Loan<Tx>): Promise<RecordSuccess | undefined> {
    return new Promise((decide) => {
      const end = (record?: RecordSuccess): void => {
        loan.end(record !== undefined);
        decide(record);
      };
      // It may also end by itself: at a deadline of the library, or with its connection. Then `commit` rejects.
      void this.#ended.then(() => {
        end();
      });
      this.#resolve({
        tx: loan.tx,
        ended: this.#ended,
        commit: async (record) => {
          end(record);
          await Promise.race([this.#done, this.#failed]);
          // The transaction of a library may also resolve if the handler has ended it.
          if (!this.#isRecorded) throw endedEarly;
        },
        rollback: async () => {
          end();
          await Promise.race([this.#ended, this.#failed]).catch(() => undefined);
        },
      });
    });
  }

  /**
   * Rolls back. Resolves when the server has replied or the connection has ended: until then its next user would
   * commit the writes of the handler. A client with a time limit drops a ROLLBACK that waits for a running statement.
   * Sends nothing once the library has ended the transaction.
   */
  async #undo(tx: Tx, cause: unknown): Promise<void> {
    let wasRefused = false;
    for (let pauseMs = undoPauseMs; await this.#isOpen(); pauseMs = Math.min(2 * pauseMs, longestUndoPauseMs)) {
      const sentAt = performance.now();
      try {
        await this.#steps.undo((sql, place) => this.#runner.send(sql, tx, place));
        return;
      } catch {
        // It is sent again.
      }
      const isRefused = performance.now() - sentAt < refusalMs;
      if (isRefused && wasRefused && !(await this.#replies(tx))) return;
      if (!isRefused || wasRefused) this.#fail(notRolledBack(cause));
      wasRefused = isRefused;
      await pause(pauseMs, { keepAlive: false });
    }
  }

  /** Whether the connection still serves any statement. */
  async #replies(tx: Tx): Promise<boolean> {
    if (!(await this.#isOpen())) return false;
    return this.#runner.send('SELECT 1', tx).then(
      () => true,
      () => false,
    );
  }

  /** Whether the library has not ended the transaction. It learns of a broken connection after the statement. */
  async #isOpen(): Promise<boolean> {
    await waitForSockets();
    return !this.#isOver;
  }
}

/**
 * How long the store waits before it sends a failed ROLLBACK again, in milliseconds. The pause doubles up to
 * `longestUndoPauseMs`.
 */
const undoPauseMs = 20;
const longestUndoPauseMs = 1_000;
/**
 * How long a client whose connection has ended takes at most to refuse a statement, in milliseconds. Every time limit
 * of a client is longer.
 */
const refusalMs = 15;

/** Resolves with whether what the handler has left running is over in time. */
export async function isIdleWithin<Tx>(ms: number, loan: Loan<Tx>): Promise<boolean> {
  const idle = loan.idle();
  if (idle === undefined) return true;
  return Promise.race([idle.then(() => true), pause(ms, { keepAlive: false }).then(() => false)]);
}

/** What was written is undone already, or nothing was. */
class NothingToUndo extends Error {}

// Made once: the stack of an error costs as much as a statement.
const neverCalled = new Error('Expected `transaction` to call its function.');
const calledAgain =
  'Expected `transaction` to call its function once, got a second call. Reject if a transaction fails, and do not repeat it.';
const refused = new NothingToUndo('The claim was refused.');
const endedEarly = new Error('The handler has ended its transaction.');
export const rolledBack = new Error('The transaction of the handler was rolled back.');
export const stillRunning = new Error(
  'What the handler had left running did not end: its transaction was rolled back.',
);

/**
 * Makes an error with the code of a time-out: a look at the row would wait for this connection if the pool has no
 * other.
 */
function notRolledBack(cause: unknown): TransferCallbackError {
  const message =
    'The database did not reply to a ROLLBACK in time. The connection goes back to its pool when the database has replied.';
  return new TransferCallbackError('STORE_TIMEOUT', message, { cause });
}
