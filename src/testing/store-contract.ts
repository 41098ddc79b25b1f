import type { CallbackStore } from '../core/store.js';
import { claimChecks } from './store-claims.js';
import { leaseChecks } from './store-leases.js';
import { recordChecks } from './store-records.js';
import { longMs, Round, runCheck } from './store-round.js';

/** One thing that every store must do. */
export interface StoreCheck {
  /** A sentence about the store. */
  readonly title: string;
  /**
   * Rejects if the store does otherwise. The message tells what the store did. With `other`, a second object on the
   * same data, deliveries claim through the two in turn.
   */
  readonly check: (store: CallbackStore<unknown>, other?: CallbackStore<unknown>) => Promise<void>;
}

/**
 * Lists what every store must do, as checks for any test runner. A transactional store, whose `settle` commits, keeps
 * nothing of a late holder; every other store keeps its success.
 *
 *     for (const { title, check } of storeContract) {
 *       test(title, () => check(store));
 *       test(`${title}, between two processes`, () => check(store, makeStore()));
 *     }
 *
 * A store that keeps claims or records within its process is caught with a second object only. Make it as another
 * process would, with its own client. The checks never claim with one token through both objects.
 *
 * Each check uses new callbacks, and frees those that it has claimed; settled records last up to a minute. A check
 * takes up to 5 s. Where a call of the store takes longer than 15 ms, or the machine is busy, a check that fails runs
 * again with longer leases before it rejects: allow a minute. At most 50 claims run concurrently, and at most 16
 * are held at the same time.
 *
 * The checks wait no longer than 1.5 s for a record, settle 150 others beside it, and do not restart your database.
 * They do not show that a record lasts for the 7 days of `retentionMs` or among more records, nor what a restart or a
 * failover loses.
 */
export const storeContract: readonly StoreCheck[] = [...claimChecks, ...leaseChecks, ...recordChecks].map(
  ({ title, leaseMs = longMs, check: run }) => ({
    title,
    check: (store, other = store) => runCheck((length) => new Round(store, other, length), leaseMs, run),
  }),
);
