import type { SafeLogger } from '../../lib/logger.js';
import type { InFlight } from '../in-flight.js';
import type { CallbackStore } from '../store.js';
import { renewalsPerLease, type ResolvedTimes } from '../times.js';

/** What the claims of a receiver share, and all else that reads or changes its records. */
export interface ClaimParts<Tx> {
  readonly options: ResolvedTimes & {
    readonly store: CallbackStore<Tx>;
    readonly logger: SafeLogger;
    /** Set for a service that reverses transfers: each transfer may have a second record. */
    readonly onReversed?: unknown;
  };
  readonly rules: StoreRules;
  readonly inFlight: InFlight;
}

/** What a claim may do depends on whether its store undoes the handler's writes with it. All of that is here. */
export interface StoreRules {
  /** How long after its request a grant may be read, in milliseconds. Later, the lease may have lapsed. */
  readonly readWithinMs: number;
  /**
   * Whether the handler's writes are undone when the claim is lost, or its success cannot be recorded. Where they are
   * kept, the handler must not run again: the callback is claimed again, and the success recorded until that works.
   */
  readonly undoesWrites: boolean;
  /** Whether one claim may have both records: of a transfer and of its refund. */
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
