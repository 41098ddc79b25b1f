import { TransferCallbackError } from '../core/errors.js';
import type { Lease } from '../core/store.js';
import { transactionEnded } from './postgres-control.js';
import { nextTurn, setTimer } from './postgres-deadline.js';
import { Fence } from './postgres-fence.js';
import type { Checkout, PgClient } from './postgres-pool.js';

interface TransactionParts {
  readonly leaseMs: number;
  /** Returns the SQL that commits. */
  readonly settleSql: () => string;
  /** Called for each renewal. */
  readonly onRenew: () => void;
  /** Called once, when the lease is over. */
  readonly onOver: () => void;
}

/** How long a failed handler's last queries may take before their connection is destroyed, in milliseconds. */
const graceMs = 500;

/** `settling` and `releasing`: the transaction's end was sent. `gone`: it was rolled back, or its end is unknown. */
type State = 'held' | 'settling' | 'releasing' | 'settled' | 'gone';

/**
 * Holds the open transaction of a claim as a lease, for as long as its connection lives and it is renewed. Its methods
 * are properties of the object itself, so that a store which wraps this one can spread the lease.
 */
export class TransactionLease implements Lease<PgClient> {
  readonly tx: PgClient;
  readonly #checkout: Checkout;
  readonly #parts: TransactionParts;
  readonly #fence: Fence;
  #state: State = 'held';
  #cancelLapse: () => void;

  constructor(checkout: Checkout, parts: TransactionParts) {
    this.#checkout = checkout;
    this.#parts = parts;
    this.#fence = new Fence(checkout.client);
    this.tx = this.#fence.tx;
    this.#cancelLapse = setTimer(parts.leaseMs, this.#lose);
    checkout.onBroken = this.#lose;
  }

  readonly renew = async (): Promise<boolean> => {
    this.#parts.onRenew();
    // After the process was held up, the news that Postgres has ended the transaction may be in a socket not read yet.
    await nextTurn();
    if (this.#isOver()) return false;
    this.#cancelLapse();
    this.#cancelLapse = setTimer(this.#parts.leaseMs, this.#lose);
    return true;
  };

  readonly settle = async (): Promise<{ overlapped: boolean }> => {
    if (this.#state === 'settled') return { overlapped: false };
    if (this.#state !== 'held') throw new TransferCallbackError('LEASE_LOST', 'The transaction was rolled back.');
    if (this.#fence.isTransactionOpen) {
      throw new TransferCallbackError(
        'TRANSACTION_CONTROL',
        'The handler has returned before the transaction that it began was committed.',
      );
    }
    this.#state = 'settling';
    this.#fence.close();
    try {
      await this.#checkout.client.query(this.#parts.settleSql());
    } catch (error) {
      // The commit may have succeeded and its reply been lost: the next attempt will find the record.
      this.#lose();
      throw isTransactionMissing(error) ? transactionEnded(error) : error;
    }
    if (this.#end('settled')) this.#checkout.giveBack();
    return { overlapped: false };
  };

  readonly release = async (): Promise<void> => {
    // A commit or a cursor may still be running: ROLLBACK would wait for it.
    if (this.#state === 'settling' || (this.#state === 'held' && this.#fence.hasSubmitted)) this.#lose();
    if (this.#state !== 'held') return;
    this.#state = 'releasing';
    await this.#endQueries();
    if (this.#isOver()) return;
    try {
      await this.#checkout.client.query('ROLLBACK');
    } catch (error) {
      this.#lose();
      throw error;
    }
    if (this.#end('gone')) this.#checkout.giveBack();
  };

  /**
   * Waits for the queries that the handler has left running. Destroys the connection if they take longer: not earlier,
   * because their promises would reject, and a function of the handler that awaits one would end the process with it.
   */
  async #endQueries(): Promise<void> {
    const cancel = setTimer(graceMs, this.#lose);
    await this.#fence.abandon();
    cancel();
  }

  readonly #lose = (): void => {
    void this.#fence.abandon();
    if (this.#end('gone')) this.#checkout.destroy();
  };

  /** Ends the lease. Returns `false`, and does nothing, if it is over already. */
  #end(state: 'settled' | 'gone'): boolean {
    if (this.#isOver()) return false;
    this.#state = state;
    this.#fence.close();
    this.#cancelLapse();
    this.#parts.onOver();
    return true;
  }

  #isOver(): boolean {
    return this.#state === 'settled' || this.#state === 'gone';
  }
}

/** Whether Postgres has found no transaction to commit, or another one: it lacks the savepoint of the claim. */
function isTransactionMissing(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '3B001' || code === '25P01';
}
