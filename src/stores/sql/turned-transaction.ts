import { pause, waitForSockets } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import { endsWithin, type Loan } from './lend.js';
import {
  defaultHeldMs,
  rolledBack,
  stillRunning,
  type ClaimSteps,
  type OpenTransaction,
  type RecordSuccess,
  type RefusedTransaction,
  type Send,
  type StatementPlace,
} from './transaction.js';

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
    const { outcome } = new TurnedTransaction(runner, steps, timeoutMs / 2, resolve);
    // Changes nothing if `resolve` was called.
    outcome.then(() => {
      reject(neverCalled);
    }, reject);
  });
}

/**
 * Where a transaction is:
 *
 *     starting ─▶ open ─▶ recorded          by its last statement; the library may still refuse to commit
 *                   └───▶ failed            the store rolls it back
 *     any but recorded ──▶ over             the library has ended it: the connection may have another user
 */
type State =
  { readonly is: 'starting' | 'open' | 'recorded' | 'over' } | { readonly is: 'failed'; readonly cause: unknown };

class TurnedTransaction<Tx> {
  /**
   * Settles when the library has ended the transaction. Rejects before that if the transaction has failed, and its
   * connection is kept for a statement that still runs on it.
   */
  readonly outcome: Promise<void>;
  readonly #runner: TransactionRunner<Tx>;
  readonly #steps: ClaimSteps;
  readonly #idleWaitMs: number;
  readonly #open: (opened: OpenTransaction<Tx> | RefusedTransaction) => void;
  readonly #ended: Promise<unknown>;
  /** Makes `outcome` reject. */
  #fail!: (error: Error) => void;
  #state: State = { is: 'starting' };

  constructor(
    runner: TransactionRunner<Tx>,
    steps: ClaimSteps,
    idleWaitMs: number,
    open: (opened: OpenTransaction<Tx> | RefusedTransaction) => void,
  ) {
    this.#runner = runner;
    this.#steps = steps;
    this.#idleWaitMs = idleWaitMs;
    this.#open = open;
    const failed = new Promise<never>((_, fail) => {
      this.#fail = fail;
    });
    const done = this.#run();
    this.#ended = done.catch(() => undefined);
    this.outcome = Promise.race([done, failed]);
  }

  async #run(): Promise<void> {
    try {
      await this.#runner.run((tx) => this.#callOnce(tx));
    } finally {
      if (this.#state.is !== 'recorded') this.#state = { is: 'over' };
    }
  }

  async #callOnce(tx: Tx): Promise<void> {
    if (this.#state.is !== 'starting') {
      // A library may repeat a transaction whose COMMIT has failed. The store would never end a second one.
      throw new Error(calledAgain, { cause: 'cause' in this.#state ? this.#state.cause : undefined });
    }
    this.#state = { is: 'open' };
    try {
      await this.#work(tx);
      this.#state = { is: 'recorded' };
    } catch (cause) {
      if (!this.#isOver()) this.#state = { is: 'failed', cause };
      if (!(cause instanceof NothingToUndo)) await this.#undo(tx, cause);
      throw cause;
    }
  }

  async #work(tx: Tx): Promise<void> {
    const send: Send = (sql, place) => this.#runner.send(sql, tx, place);
    const inTheWay = await this.#steps.claim(send);
    if (inTheWay !== undefined) {
      this.#open({ inTheWay, ended: this.#ended });
      throw refused;
    }
    const loan = this.#runner.lend(tx);
    const record = await this.#lendUntilDecided(loan);
    if (this.#isOver()) throw rolledBack;
    const running = loan.idle();
    if (running !== undefined && !(await endsWithin(this.#idleWaitMs, running))) {
      loan.end(false);
      await this.#undo(tx, stillRunning);
      this.#fail(stillRunning);
      // The end of a nested transaction is a statement, which must not reach the next user of the connection.
      await endsWithin(defaultHeldMs, running);
      throw new NothingToUndo(stillRunning.message);
    }
    if (record === undefined) throw rolledBack;
    await record(send).catch((error: unknown) => {
      loan.end(false);
      throw error;
    });
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
      this.#open({
        tx: loan.tx,
        ended: this.#ended,
        commit: async (record) => {
          end(record);
          await this.outcome;
          // The transaction of a library may also resolve if the handler has ended it.
          if (this.#state.is !== 'recorded') throw endedEarly;
        },
        rollback: async () => {
          end();
          await this.outcome.catch(() => undefined);
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
    return !this.#isOver();
  }

  #isOver(): boolean {
    return this.#state.is === 'over';
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

/** What was written is undone already, or nothing was. */
class NothingToUndo extends Error {}

// Made once: the stack of an error costs as much as a statement.
const neverCalled = new Error('Expected `transaction` to call its function.');
const calledAgain =
  'Expected `transaction` to call its function once, got a second call. Reject if a transaction fails, and do not repeat it.';
const refused = new NothingToUndo('The claim was refused.');
const endedEarly = new Error('The handler has ended its transaction.');

/**
 * Makes an error with the code of a time-out: a look at the row would wait for this connection if the pool has no
 * other.
 */
function notRolledBack(cause: unknown): TransferCallbackError {
  const message =
    'The database did not reply to a ROLLBACK in time. The connection goes back to its pool when the database has replied.';
  return new TransferCallbackError('STORE_TIMEOUT', message, { cause });
}
