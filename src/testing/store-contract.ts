import type { CallbackStore } from '../core/store.js';
import { claimChecks } from './store-claims.js';
import { leaseChecks } from './store-leases.js';
import { recordChecks } from './store-records.js';
import { longMs, Round, runCheck } from './store-round.js';

/** One thing that every store must do. */
export interface StoreCheck {
  /** A sentence about the store. */
  readonly title: string;
  /** Rejects if the store does otherwise, and says what it did. */
  readonly check: (store: CallbackStore<unknown>) => Promise<void>;
}

/** A check as it is written down. */
export interface WrittenCheck {
  readonly title: string;
  /** The length of what is to end during the check, in milliseconds, as long as the store is fast. Default: nothing ends. */
  readonly leaseMs?: number;
  readonly check: (round: Round) => Promise<void>;
}

/**
 * What every store must do, as data, for any test runner. A transactional store, whose `settle` commits, keeps nothing
 * of a late holder; every other store keeps its success.
 *
 *     for (const { title, check } of storeContract) test(title, () => check(store));
 *
 * Each check uses callbacks of its own and frees what it has claimed; settled records last 30 s. A check takes up to
 * 5 s. Where a call of the store takes longer than 15 ms, or the machine is busy, a check that fails repeats itself with
 * longer leases before it fails for good: allow a minute. At most 50 claims are made concurrently, and 16 held.
 *
 * What takes too long to wait for is not checked: that a record really lasts for the 7 days of `retentionMs`, only that
 * it lasts for 1.5 s; and what a restart or a failover of your database forgets.
 */
export const storeContract: readonly StoreCheck[] = [...claimChecks, ...leaseChecks, ...recordChecks].map(
  ({ title, leaseMs = longMs, check: run }) => ({
    title,
    check: (store) => runCheck((length) => new Round(store, length), leaseMs, run),
  }),
);
