import type { Loan } from './lend.js';
import {
  isIdleWithin,
  rolledBack,
  stillRunning,
  type ClaimSteps,
  type OpenTransaction,
  type RefusedTransaction,
  type Send,
} from './transaction.js';

/** How long a ROLLBACK may wait for the queries that a handler has left running, in milliseconds. */
export const rollbackMs = 500;

/** A connection that the store has taken out of a pool, and on which it begins and ends a transaction itself. */
export interface OwnConnection<Tx> {
  readonly send: Send;
  /** Called if the connection ends before it goes back. */
  onEnd: (error: Error) => void;
  lend(): Loan<Tx>;
  /** Returns the connection to its pool. */
  giveBack(): void;
  /** Rolls back, and then returns the connection to its pool, or ends it if the rollback fails. Never rejects. */
  rollBack(steps: ClaimSteps): Promise<void>;
}

/** Begins a transaction. What the handler has left running is waited for, for at most half of `timeoutMs`. */
export async function beginOwn<Tx>(
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
    return new OwnTransaction(connection, steps, timeoutMs / 2);
  } catch (error) {
    await connection.rollBack(steps);
    throw error;
  }
}

/** It ends once: by what comes first of `commit`, `rollback` and the end of its connection. */
class OwnTransaction<Tx> implements OpenTransaction<Tx> {
  readonly tx: Tx;
  readonly ended: Promise<void>;
  readonly #connection: OwnConnection<Tx>;
  readonly #steps: ClaimSteps;
  readonly #idleWaitMs: number;
  readonly #loan: Loan<Tx>;
  #hasEnded!: () => void;
  #ending: Promise<void> | undefined;

  constructor(connection: OwnConnection<Tx>, steps: ClaimSteps, idleWaitMs: number) {
    this.#connection = connection;
    this.#steps = steps;
    this.#idleWaitMs = idleWaitMs;
    this.#loan = connection.lend();
    this.tx = this.#loan.tx;
    this.ended = new Promise((resolve) => {
      this.#hasEnded = resolve;
    });
    connection.onEnd = (error) => void this.#endBy(error);
  }

  commit(record: (send: Send) => Promise<unknown>): Promise<void> {
    return (this.#ending ??= this.#commit(record));
  }

  rollback(): Promise<void> {
    return this.#endBy(rolledBack);
  }

  /** Rolls back, unless it is ending already. A later `commit` rejects with the cause. */
  #endBy(cause: Error): Promise<void> {
    this.#ending ??= this.#undo(cause);
    return this.#ending.catch(() => undefined);
  }

  async #commit(record: (send: Send) => Promise<unknown>): Promise<void> {
    this.#loan.end(true);
    try {
      if (!(await isIdleWithin(this.#idleWaitMs, this.#loan))) throw stillRunning;
      await record(this.#connection.send);
    } catch (error) {
      return await this.#undo(error);
    }
    this.#connection.giveBack();
    this.#hasEnded();
  }

  async #undo(cause: unknown): Promise<never> {
    this.#loan.end(false);
    await this.#connection.rollBack(this.#steps);
    this.#hasEnded();
    throw cause;
  }
}
