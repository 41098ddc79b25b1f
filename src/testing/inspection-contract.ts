import type { InspectableStore } from '../core/store.js';
import { forgetChecks } from './inspection-forget.js';
import { readChecks } from './inspection-read.js';
import { InspectionRound } from './inspection-round.js';
import { longMs, runCheck } from './store-round.js';

/** One thing that every store with `read` and `forget` must do. */
export interface InspectionCheck {
  /** A sentence about the store. */
  readonly title: string;
  /**
   * Rejects if the store does otherwise. The message tells what the store did. With `other`, a second object on the
   * same data, deliveries claim through the two in turn, and `other` reads and forgets.
   */
  readonly check: (store: InspectableStore<unknown>, other?: InspectableStore<unknown>) => Promise<void>;
}

/**
 * Lists what `read` and `forget` of a store must do, as checks for any test runner. A store that lacks one of them does
 * not compile.
 *
 *     for (const { title, check } of inspectionContract) test(title, () => check(store));
 *
 * Each check uses new callbacks, takes a few seconds, and may take a minute on a busy machine. At most 100 calls of
 * `read` run concurrently. The clock of the store may differ by 10 s from the clock of this machine.
 */
export const inspectionContract: readonly InspectionCheck[] = [...readChecks, ...forgetChecks].map(
  ({ title, leaseMs = longMs, check: run }) => ({
    title,
    check: (store, other = store) => runCheck((length) => new InspectionRound(store, other, length), leaseMs, run),
  }),
);
