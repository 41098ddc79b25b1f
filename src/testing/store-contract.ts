import { hasMethods, invalidArgument, onlyKnownOptions } from '../lib/checks.js';
import type { CallbackStore } from '../core/store.js';
import { claimChecks } from './store-claims.js';
import { inspectionChecks } from './store-inspections.js';
import { periodChecks } from './store-periods.js';
import { refundChecks } from './store-refunds.js';
import { longMs, Round, runCheck, type StoreTransaction, type WrittenCheck } from './store-round.js';
import { writeChecks } from './store-writes.js';

/** Options of a check of `storeContract`. */
export interface StoreCheckOptions<Tx> {
  /**
   * A second object on the same data. Deliveries claim through the two in turn, and this one reads and forgets. Without
   * it the store itself does both.
   * @default none
   */
  other?: CallbackStore<Tx> | undefined;
  /**
   * What a handler does through `tx`. A transactional store needs it.
   * @default none
   */
  transaction?: StoreTransaction<Tx> | undefined;
}

/**
 * One thing that every store must do. `storeContract` lists them.
 *
 * @example
 * const findCheck = (title: string): StoreCheck | undefined => storeContract.find((check) => check.title === title);
 */
export interface StoreCheck {
  /** A sentence about the store. */
  readonly title: string;
  /** Rejects if the store does otherwise. The message tells what the store did. Throws INVALID_ARGUMENT. */
  readonly check: <Tx>(store: CallbackStore<Tx>, options?: StoreCheckOptions<Tx>) => Promise<void>;
}

/**
 * Lists what every store must do, as checks for any test runner.
 *
 *     for (const { title, check } of storeContract) {
 *       test(title, () => check(store));
 *       test(`${title}, between two processes`, () => check(store, { other: makeStore() }));
 *     }
 *
 * A store that keeps claims or records within its process is caught with a second object only. Make it as another
 * process would, with its own client. The checks never claim with one token through both objects.
 *
 * The checks of `read` and `forget` accept a store without them. The checks of refunds accept a transactional store
 * without `claimsBoth`, with which no receiver takes `onReversed`. The checks of writes through `tx` run if they get
 * `transaction`. A transactional store, whose `settle` commits, keeps nothing of a late holder; every other store keeps
 * its success.
 *
 * Each check uses new callbacks, and frees those that it has claimed; handled records last up to a minute. A check
 * takes up to 5 s. Where a call of the store takes longer than 15 ms, or the machine is busy, a check that fails runs
 * again with longer leases before it rejects: allow a minute. At most 50 claims and 100 calls of `read` run
 * concurrently, and at most 16 claims are held at the same time. The clock of the store may differ by 10 s from the
 * clock of this machine.
 *
 * The checks wait no longer than 1.5 s for a record, settle 150 others beside it, and do not restart your database.
 * They do not show that a record lasts for the 7 days of `retentionMs` or among more records, nor what a restart or a
 * failover loses.
 *
 * @example
 * for (const { title, check } of storeContract) test(title, () => check(store), 60_000);
 */
export const storeContract: readonly StoreCheck[] = [
  ...claimChecks,
  ...periodChecks,
  ...inspectionChecks,
  ...refundChecks,
  ...writeChecks,
].map((check) => ({ title: check.title, check: (store, options = {}) => bindAndRun(check, store, options) }));

async function bindAndRun(
  { needs, leaseMs = longMs, check }: WrittenCheck,
  store: CallbackStore<unknown>,
  options: StoreCheckOptions<unknown>,
): Promise<void> {
  onlyKnownOptions(options, ['other', 'transaction']);
  const { other = store, transaction } = options;
  if (store.transactional === true && needs === 'write' && !hasMethods(transaction, 'write', 'count')) {
    throw invalidArgument(
      'transaction',
      'what a handler does through `tx`, because the store is transactional',
      transaction,
      'check(store, { transaction: { write, count } })',
    );
  }
  if (isApplicable(needs, store, other, transaction))
    await runCheck((length) => new Round(store, other, transaction, length), leaseMs, check);
}

function isApplicable(
  needs: WrittenCheck['needs'],
  store: CallbackStore<unknown>,
  other: CallbackStore<unknown>,
  transaction: StoreTransaction<unknown> | undefined,
): boolean {
  if (needs === 'refunds') return store.transactional !== true || store.claimsBoth === true;
  if (needs === 'claimsBoth') return store.claimsBoth === true;
  return needs === undefined || hasMethods(other, needs) || hasMethods(transaction, needs);
}
