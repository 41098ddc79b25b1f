import type { HeldClaim } from './claim/held-claim.js';
import type { Delivery } from './delivery.js';
import type { WatchedTx } from './watched-tx.js';
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
