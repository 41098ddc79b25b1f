import type { Timer } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';
import type { HeldClaim } from './claim/held-claim.js';
import type { Delivery } from './delivery.js';
import type { HandlerContext } from './options.js';

const parts = Symbol('transfer-callbacks:parts');

/** What the getters of a context read. Not enumerable: a copy of the context has the values in its place. */
interface WithParts {
  readonly [parts]: { readonly claim: HeldClaim<unknown>; readonly watched: WatchedTx<unknown> | undefined };
}

/**
 * One getter for all contexts: V8 makes a hidden class for each getter of a literal, and keeps it, with all that the
 * getter refers to, until its next major collection.
 */
const signal: PropertyDescriptor & ThisType<WithParts> = {
  enumerable: true,
  get() {
    return this[parts].claim.signal;
  },
};
const tx: PropertyDescriptor & ThisType<WithParts> = {
  enumerable: true,
  get() {
    const { claim, watched } = this[parts];
    return watched === undefined ? claim.tx : watched.use();
  },
};

/** Makes the context of a handler. A signal that it does not read costs nothing. */
export function toContext<Tx>(
  { name, source }: Delivery,
  claim: HeldClaim<Tx>,
  watched: WatchedTx<Tx> | undefined,
  afterCommit: HandlerContext<Tx>['afterCommit'],
): HandlerContext<Tx> {
  const context = { delivery: name, source, afterCommit };
  Object.defineProperty(context, parts, { value: { claim, watched } });
  // One by one, which takes half as long as both at once.
  Object.defineProperty(context, 'signal', signal);
  return Object.defineProperty(context, 'tx', tx) as unknown as HandlerContext<Tx>;
}

const unusedTx =
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
    return new TransferCallbackError('HANDLER_WITHOUT_TX', unusedTx);
  }
}
