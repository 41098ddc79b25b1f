import { channel } from 'node:diagnostics_channel';
import type { CallbackShape } from '../../core/callback.js';
import { invalidArgument, onlyKnownOptions, requireFunction, wholeNumber } from '../../lib/checks.js';
import { requireAsk } from '../ask.js';
import { requireIterable, requireReceiver, requireSignal } from '../checks.js';
import { Run, type Fault, type RunOptions } from './run.js';
import type { TransferList } from './list.js';
import { ReconciliationError } from './errors.js';
import { findCreationMs } from './item.js';
import { reconcilePaid, reconcilePending, type Receiving } from './transfer.js';
import { ReportBuilder, type PendingTransfer, type Reconciled, type ReconciliationReport } from './report.js';
import { Throttle } from './throttle.js';

/** Options of `reconcileTransfers`. */
export interface ReconcileOptions<C extends CallbackShape, Tx> extends RunOptions {
  /** The receiver of the callbacks, or one on the same store, which knows what was handled before. */
  receiver: Receiving<C, Tx>;
  /**
   * The transfers that are open in your books, oldest first, for example rows of a cursor. Taken one at a time, when
   * needed.
   * @default none: for a run over `paid` alone
   */
  pending?: TransferList | undefined;
  /**
   * The transfers that are paid in your books and may still be reversed, oldest first. Only reversals
   * are handed to the receiver. Taken after `pending`.
   * @default none
   */
  paid?: TransferList | undefined;
  /**
   * Younger transfers of `pending` are left to their callbacks, in milliseconds.
   * @default 600_000
   */
  minAgeMs?: number | undefined;
  /**
   * Called once per transfer, and awaited. What it throws ends the run.
   * @default none
   */
  onProgress?: ((reconciled: Reconciled, report: Readonly<ReconciliationReport>) => unknown) | undefined;
}

/**
 * What the diagnostics channel `transfer-callbacks:reconciled` publishes at the end of each run, successful or not.
 * Frozen.
 */
export interface ReconciledMessage {
  /** What `reconcileTransfers` resolves with, or the report of the `ReconciliationError` that it rejects with. */
  readonly report: Readonly<ReconciliationReport>;
  readonly durationMs: number;
  /** The creation time of the oldest transfer of `pending` that the run left open; `undefined` if there is none. */
  readonly oldestOpenAt: Date | undefined;
  /** Whether the run had no `pending`, so that it tells nothing about open transfers. */
  readonly onlyPaid: boolean;
}

const runs = channel('transfer-callbacks:reconciled');
const runOptionNames = ['concurrency', 'queriesPerSecond', 'limit', 'signal'];
const optionNames = [...runOptionNames, 'receiver', 'pending', 'paid', 'minAgeMs', 'onProgress'];

/**
 * Makes one run over the transfers whose callback has not come (service §6.5). Reads each, and gives those that are
 * final to the receiver, with source `reconciliation`. A callback and a run may meet, in one process or in two: the
 * handler runs once. It gives only the reversals of `paid` to the receiver. Pauses while the service is
 * unavailable, and ends after 10 failures in a row; see `Stopped`. Rejects with INVALID_ARGUMENT, or with a
 * `ReconciliationError`, which has the report, when `pending`, `paid` or `onProgress` throws. Publishes each run on
 * the diagnostics channel `transfer-callbacks:reconciled`; see `ReconciledMessage`.
 *
 * @example
 * const report = await reconcileTransfers({ receiver, pending });
 * if (report.stopped !== undefined) console.error(report);
 */
export async function reconcileTransfers<C extends CallbackShape, Tx>(
  options: ReconcileOptions<C, Tx>,
): Promise<ReconciliationReport> {
  checkOptions(options);
  const { receiver, pending = [], paid, minAgeMs = 600_000, queriesPerSecond = Infinity, limit = Infinity } = options;
  const service = { ask: requireAsk(receiver), throttle: new Throttle(queriesPerSecond) };
  const ofPending = new ReportBuilder(receiver.options?.service?.seemsFinal);
  const ofPaid = new ReportBuilder();
  const { report } = ofPending;
  if (paid !== undefined) report.paid = ofPaid.report;

  async function note(builder: ReportBuilder, transfer: PendingTransfer, reconciled: Reconciled): Promise<boolean> {
    builder.add(reconciled, findCreationMs(transfer));
    await options.onProgress?.(reconciled, report);
    return reconciled.result !== 'pending' || reconciled.reason !== 'not_read';
  }
  async function reconcileLists(): Promise<Fault | undefined> {
    const first = new Run(service, { name: 'pending', source: pending }, options, report);
    const fault = await first.handleEach(async (transfer) =>
      note(ofPending, transfer, await reconcilePending(transfer, minAgeMs, first, receiver)),
    );
    // The last transfer of `pending` may have met trouble: that list is complete, and the service needs a pause.
    ofPaid.report.stopped = report.stopped ?? first.trouble;
    if (paid === undefined || ofPaid.report.stopped !== undefined) return fault;
    const rest = { ...options, limit: limit - first.count };
    const second = new Run(service, { name: 'paid', source: paid }, rest, ofPaid.report);
    return second.handleEach(async (transfer) =>
      note(ofPaid, transfer, await reconcilePaid(transfer, second, receiver)),
    );
  }

  const fault = await reconcileLists();
  report.durationMs += ofPaid.report.durationMs;
  const { oldestOpenAt } = ofPending;
  const onlyPaid = options.pending === undefined;
  const message: ReconciledMessage = { report, durationMs: report.durationMs, oldestOpenAt, onlyPaid };
  runs.publish(Object.freeze(message));
  if (fault !== undefined) throw new ReconciliationError(fault.code, report, fault.cause);
  return report;
}

function checkOptions<C extends CallbackShape, Tx>(options: ReconcileOptions<C, Tx>): void {
  onlyKnownOptions(options, optionNames);
  const { receiver, pending, paid, minAgeMs, onProgress, concurrency, queriesPerSecond, limit, signal } = options;
  // Each of them is a worker, which takes memory whether it has a transfer or not.
  if (concurrency !== undefined) wholeNumber('concurrency', concurrency, { min: 1, max: 10_000, example: 4 });
  if (queriesPerSecond !== undefined) wholeNumber('queriesPerSecond', queriesPerSecond, { min: 1, example: 10 });
  if (limit !== undefined) wholeNumber('limit', limit, { min: 1, example: 1_000 });
  requireSignal(signal);
  if (minAgeMs !== undefined) {
    wholeNumber('minAgeMs', minAgeMs, { min: 0, max: Number.MAX_SAFE_INTEGER, example: 600_000 });
  }
  requireReceiver(receiver, 'receive');
  if (pending !== undefined || paid === undefined) requireIterable('pending', pending);
  if (paid !== undefined) {
    if (receiver.options?.service?.meanings.has('REVERSED') !== true) {
      const expected = 'left out, because no state of the service of the receiver is REVERSED';
      throw invalidArgument('paid', expected, paid);
    }
    requireIterable('paid', paid);
  }
  if (onProgress !== undefined) requireFunction('onProgress', onProgress, '(transfer) => {}');
}
