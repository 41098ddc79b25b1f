import { channel } from 'node:diagnostics_channel';
import type { CallbackShape } from '../../core/callback.js';
import { onlyKnownOptions, requireFunction, wholeNumber } from '../../lib/checks.js';
import { requireAsk } from '../ask.js';
import { requireIterable, requireReceiver } from '../checks.js';
import { checkPassOptions, passOptionNames, type PassOptions } from './options.js';
import { Pass } from './pass.js';
import type { Pending } from './pending.js';
import { findCreationMs } from './item.js';
import { reconcilePending, type Receiving } from './transfer.js';
import { ReportBuilder, type Reconciled, type ReconciliationReport } from './report.js';

/** Options of `reconcileTransfers`. */
export interface ReconcileOptions<C extends CallbackShape, Tx> extends PassOptions {
  /** The receiver of the callbacks, or one on the same store, which knows what was handled before. */
  receiver: Receiving<C, Tx>;
  /** The open transfers, oldest first, for example rows of a cursor. Taken one at a time, when needed. */
  pending: Pending;
  /**
   * Younger transfers are left to their callbacks, in milliseconds.
   * @default 600_000
   */
  minAgeMs?: number | undefined;
  /**
   * Called once per transfer, and awaited. What it throws ends the pass.
   * @default none
   */
  onProgress?: ((reconciled: Reconciled, report: Readonly<ReconciliationReport>) => unknown) | undefined;
}

/**
 * What the diagnostics channel `transfer-callbacks:reconciled` publishes at the end of each pass, successful or not.
 * Frozen.
 */
export interface ReconciledMessage {
  /** What `reconcileTransfers` resolves with, or the report of the `ReconciliationError` that it rejects with. */
  readonly report: Readonly<ReconciliationReport>;
  readonly durationMs: number;
  /** The creation time of the oldest transfer that the pass left open; `undefined` if there is none. */
  readonly oldestOpenAt: Date | undefined;
}

const passes = channel('transfer-callbacks:reconciled');
const optionNames = [...passOptionNames, 'receiver', 'pending', 'minAgeMs', 'onProgress'];

/**
 * Makes one pass over the transfers whose callback has not come (service §6.5). Reads each, and gives those that are
 * final to the receiver, with source `reconciliation`. A callback and a pass may meet, in one process or in two: the
 * handler runs once. Pauses while the service is unavailable, and ends after 10 failures in a row; see `Stopped`.
 * Rejects with INVALID_ARGUMENT, or with a `ReconciliationError`, which has the report, when `pending` or `onProgress`
 * throws. Publishes each pass on the diagnostics channel `transfer-callbacks:reconciled`; see `ReconciledMessage`.
 *
 * @example
 * const report = await reconcileTransfers({ client, receiver, pending });
 * if (report.stopped !== undefined) console.error(report);
 */
export async function reconcileTransfers<C extends CallbackShape, Tx>(
  options: ReconcileOptions<C, Tx>,
): Promise<ReconciliationReport> {
  onlyKnownOptions(options, optionNames);
  const { receiver, pending, minAgeMs = 600_000, onProgress } = options;
  checkPassOptions(options);
  wholeNumber('minAgeMs', minAgeMs, { min: 0, max: Number.MAX_SAFE_INTEGER, example: 600_000 });
  requireReceiver(receiver, 'receive');
  const ask = requireAsk(options.client, receiver);
  requireIterable('pending', pending);
  if (onProgress !== undefined) requireFunction('onProgress', onProgress, '(transfer) => {}');

  const builder = new ReportBuilder();
  const { report } = builder;
  const pass = new Pass(ask, pending, options, report);
  try {
    await pass.run(async (transfer) => {
      const reconciled = await reconcilePending(transfer, minAgeMs, pass, receiver);
      builder.add(reconciled, findCreationMs(transfer));
      await onProgress?.(reconciled, report);
      return reconciled.result !== 'pending' || reconciled.reason !== 'not_read';
    });
  } finally {
    publish(builder);
  }
  return report;
}

function publish({ report, oldestOpenAt }: ReportBuilder): void {
  const message: ReconciledMessage = { report, durationMs: report.durationMs, oldestOpenAt };
  passes.publish(Object.freeze(message));
}
