import type { Timer } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';

const message =
  'The handler has waited for something and not used `context.tx`: its writes are not committed with the record, and each of ' +
  'its queries needs another connection of the pool';

/** The transaction of a handler, and whether the handler has used it. */
export class WatchedTx<Tx> {
  readonly #tx: Tx;
  #isUsed = false;
  #hasWaited = false;
  #turn: Timer | undefined;

  constructor(tx: Tx) {
    this.#tx = tx;
  }

  /** Notes from now on whether the handler waits. Most handlers have used `tx` by then, and cost no timer. */
  beginWatch(): void {
    if (this.#isUsed) return;
    this.#turn = setTimeout(() => {
      this.#hasWaited = true;
    }, 0);
  }

  use(): Tx {
    this.#isUsed = true;
    return this.#tx;
  }

  /**
   * Ends the watch. Returns the error of a handler that has not used `tx`. One that waits for nothing only
   * acknowledges.
   */
  endWatch(): TransferCallbackError | undefined {
    clearTimeout(this.#turn);
    if (this.#isUsed || !this.#hasWaited) return undefined;
    return new TransferCallbackError('HANDLER_WITHOUT_TX', message);
  }
}
