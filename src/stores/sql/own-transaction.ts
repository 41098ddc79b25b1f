import type { Loan } from './lend.js';
import {
  isIdleWithin,
  rolledBack,
  stillRunning,
  type Opening,
  type OpenTransaction,
  type RefusedTransaction,
  type Send,
} from './transaction.js';

/** A connection that the store has taken out of a pool, and on which it begins and ends a transaction itself. */
export interface OwnConnection<Tx> {
  readonly send: Send;
  /** Called if the connection ends before it goes back. */
  onEnd: (error: Error) => void;
  lend(): Loan<Tx>;
  /** Gives the connection back to its pool. */
  giveBack(): void;
  /** Rolls back, and then gives the connection back, or ends it if that fails. Never rejects. */
  rollBack(opening: Opening): Promise<void>;
}

/** Begins a transaction. What the handler has left running is waited for, for at most half of `timeoutMs`. */
export async function beginOwn<Tx>(
  connection: OwnConnection<Tx>,
  opening: Opening,
  timeoutMs: number,
): Promise<OpenTransaction<Tx> | RefusedTransaction> {
  try {
    const inTheWay = await opening.claim(connection.send);
    if (inTheWay === undefined) return new OwnTransaction(connection, opening, timeoutMs / 2);
    connection.giveBack();
    return { inTheWay, ended: Promise.resolve() };
  } catch (error) {
    await connection.rollBack(opening);
    throw error;
  }
}

/** It ends once: by what comes first of `commit`, `rollback` and the end of its connection. */
class OwnTransaction<Tx> implements OpenTransaction<Tx> {
  readonly tx: Tx;
  readonly ended: Promise<void>;
  readonly #connection: OwnConnection<Tx>;
  readonly #opening: Opening;
  readonly #idleWaitMs: number;
  readonly #loan: Loan<Tx>;
  #hasEnded!: () => void;
  #ending: Promise<void> | undefined;

  constructor(connection: OwnConnection<Tx>, opening: Opening, idleWaitMs: number) {
    this.#connection = connection;
    this.#opening = opening;
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
    await this.#connection.rollBack(this.#opening);
    this.#hasEnded();
    throw cause;
  }
}
