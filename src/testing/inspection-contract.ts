import type { InspectableStore } from '../core/store.js';
import { forgetChecks } from './inspection-forget.js';
import { readChecks } from './inspection-read.js';
import { InspectionRound } from './inspection-round.js';
import { longMs, runCheck } from './store-round.js';

/** One thing that every store with `read` and `forget` must do. */
export interface InspectionCheck {
  /** A sentence about the store. */
  readonly title: string;
  /** Rejects if the store does otherwise, and says what it did. */
  readonly check: (store: InspectableStore<unknown>) => Promise<void>;
}

/** A check as it is written down. */
export interface WrittenInspectionCheck {
  readonly title: string;
  /** The length of what is to end during the check, in milliseconds, if the store is fast. Default: nothing ends. */
  readonly leaseMs?: number;
  readonly check: (round: InspectionRound) => Promise<void>;
}

/**
 * What `read` and `forget` of a store must do, as data, for any test runner. A store without them does not compile here.
 *
 *     for (const { title, check } of inspectionContract) test(title, () => check(store));
 *
 * The rules of `storeContract` hold: each check uses its own callbacks, takes a few seconds, and may take a minute on a
 * busy machine. At most 100 calls of `read` run concurrently. Times that the store reports may differ by 10 s from this
 * machine's clock.
 */
export const inspectionContract: readonly InspectionCheck[] = [...readChecks, ...forgetChecks].map(
  ({ title, leaseMs = longMs, check: run }) => ({
    title,
    check: (store) => runCheck((length) => new InspectionRound(store, length), leaseMs, run),
  }),
);
