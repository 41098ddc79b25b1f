import { renewalsPerLease } from '../options.js';
import type { CallbackStore } from '../store.js';

/** What a claim may do depends on whether its store undoes the handler's writes with it. All of that is here. */
export interface StoreRules {
  /** How long after its request a grant may be read, in milliseconds. Later, the lease may have lapsed. */
  readonly readWithinMs: number;
  /**
   * Whether the handler's writes are undone when the claim is lost, or its success cannot be recorded. Where they are
   * kept, the handler must not run again: the callback is claimed again, and the success recorded until that works.
   */
  readonly undoesWrites: boolean;
  /** Whether one claim may have the record of a transfer and that of its refund. */
  readonly claimsBoth: boolean;
  /** Whether a claim queues for a connection before it begins, for up to `queueMs` of its request. */
  readonly queues: boolean;
}

export function rulesOf({ transactional, claimsBoth }: CallbackStore<unknown>, leaseMs: number): StoreRules {
  const rules = { claimsBoth: claimsBoth === true };
  return transactional === true
    ? // It settles no claim that has lapsed, and its pool may have no second connection for a renewal.
      { ...rules, readWithinMs: leaseMs, undoesWrites: true, queues: true }
    : { ...rules, readWithinMs: leaseMs / renewalsPerLease, undoesWrites: false, queues: false };
}
