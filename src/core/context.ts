import type { HeldClaim } from './claim/held-claim.js';
import type { Delivery } from './delivery.js';
import type { LentTx } from './lent-tx.js';
import type { HandlerContext } from './options.js';

const parts = Symbol('transfer-callbacks:parts');

/** What the getters of a context read. Not enumerable, so that a copy has the values. */
interface WithParts {
  readonly [parts]: { readonly claim: HeldClaim<unknown>; readonly lent: LentTx<unknown> };
}

/**
 * One getter for all contexts: V8 makes a hidden class for each getter of a literal, and keeps it, with all that the getter
 * refers to, until its next major collection.
 */
const getters: PropertyDescriptorMap = {
  signal: {
    enumerable: true,
    get(this: WithParts) {
      return this[parts].claim.signal;
    },
  },
  tx: {
    enumerable: true,
    get(this: WithParts) {
      return this[parts].lent.use();
    },
  },
};

/** Makes the context of a handler. A signal that it does not read costs nothing. */
export function toContext<Tx>(
  { name, source }: Delivery,
  claim: HeldClaim<Tx>,
  lent: LentTx<Tx>,
  afterCommit: HandlerContext<Tx>['afterCommit'],
): HandlerContext<Tx> {
  const context = { delivery: name, source, afterCommit };
  Object.defineProperty(context, parts, { value: { claim, lent } });
  return Object.defineProperties(context, getters) as HandlerContext<Tx>;
}
