import type { CallbackShape } from '../core/callback.js';
import { invalidArgument, onlyKnownOptions, wholeNumber } from '../core/checks.js';
import type { TransferCallbackOutcome } from '../core/outcome.js';
import type { TransferCallbackReceiver } from '../core/receiver.js';
import { reconciliation } from './callback.js';
import { TransferClientError } from './errors.js';
import { messageOf } from './lookup.js';
import { checkPassOptions, passOptionNames, requireIterable, type PassOptions } from './pass-options.js';
import { Pass } from './pass.js';
import {
  addToReport,
  describe,
  emptyReport,
  type PendingTransfer,
  type Reconciled,
  type ReconciliationReport,
} from './report.js';

/** Options of `reconcileTransfers`. */
export interface ReconcileOptions<C extends CallbackShape, Tx> extends PassOptions {
  /** The receiver of the callbacks, or one on the same store, which knows what was handled before. */
  receiver: Pick<TransferCallbackReceiver<C, Tx>, 'receive'>;
  /** The open transfers, oldest first, for example rows of a cursor. Taken one at a time, when needed. */
  pending: AsyncIterable<PendingTransfer> | Iterable<PendingTransfer>;
  /** Younger transfers are left to their callbacks, in milliseconds. Default 600 000. */
  minAgeMs?: number | undefined;
  /** Called once per transfer, and awaited. What it throws ends the pass. */
  onProgress?: ((reconciled: Reconciled, report: Readonly<ReconciliationReport>) => unknown) | undefined;
}

const optionNames = [...passOptionNames, 'receiver', 'pending', 'minAgeMs', 'onProgress'];
const dayMs = 86_400_000;

/**
 * One pass over the transfers whose callback has not come (service §6.5): reads each, and gives those that are final
 * to the receiver with source `reconciliation`. A callback and a pass may meet, in one process or in two: the handler
 * runs once. Pauses while the service is unavailable, and ends after 10 failures in a row; see `Stopped`. Rejects with
 * INVALID_ARGUMENT, or with a `ReconciliationError`, which has the report, when `pending` or `onProgress` throws.
 */
export async function reconcileTransfers<C extends CallbackShape, Tx>(
  options: ReconcileOptions<C, Tx>,
): Promise<ReconciliationReport> {
  onlyKnownOptions(options, optionNames);
  const { receiver, pending, minAgeMs = 600_000, onProgress } = options;
  checkPassOptions(options);
  wholeNumber('minAgeMs', minAgeMs, 0, Number.MAX_SAFE_INTEGER);
  if (typeof (receiver as Partial<typeof receiver> | undefined)?.receive !== 'function') {
    throw invalidArgument('receiver', 'made by transferCallbackReceiver()', receiver);
  }
  requireIterable('pending', pending);

  const report = emptyReport();
  const pass = new Pass<PendingTransfer>(options, report);
  await pass.run(pending, async (transfer) => {
    const reconciled = await reconcileTransfer(transfer, pass, receiver, minAgeMs);
    addToReport(report, reconciled, ageOf(transfer));
    await onProgress?.(reconciled, report);
    return reconciled.result === 'pending' && reconciled.reason === 'not_read' ? 'unread' : 'read';
  });
  return report;
}

/** Decides about one transfer. */
async function reconcileTransfer<C extends CallbackShape, Tx>(
  transfer: PendingTransfer,
  pass: Pass<PendingTransfer>,
  receiver: ReconcileOptions<C, Tx>['receiver'],
  minAgeMs: number,
): Promise<Reconciled> {
  const ageMs = ageOf(transfer);
  const id = idOf(transfer);
  // A date in the future is a mistake of units or zones, and would keep the transfer pending until then.
  if (!(ageMs > -dayMs && ageMs < Infinity)) return { id, result: 'failed', error: invalidItem() };
  if (ageMs < minAgeMs) return { id, result: 'pending', reason: 'too_young' };

  const found = await pass.lookUp(id);
  if (found.result === 'unread') return { id, result: 'pending', reason: 'not_read' };
  if (found.result === 'open') return { id, result: 'pending', reason: 'not_final' };
  if (found.result !== 'final') return { id, result: found.result, error: found.error };

  const callback = { event: found.event, data: found.transaction };
  let ended: TransferCallbackOutcome;
  try {
    ended = await receiver.receive(callback, { source: reconciliation });
  } catch (cause) {
    // This package's receiver never rejects; one of your own may.
    const error = new TransferClientError('NOT_HANDLED', `The receiver rejected: ${messageOf(cause)}`, { cause });
    return { id, result: 'failed', error };
  }
  pass.noteStore(ended.outcome !== 'store_unavailable');
  if (ended.outcome === 'processed' || ended.outcome === 'duplicate') return { id, result: ended.outcome };
  if (ended.outcome !== 'closing') return { id, result: 'failed', ...describe(ended) };
  pass.stop('closing');
  return { id, result: 'pending', reason: 'not_read' };
}

/** NaN for what is no transfer: JavaScript, or a cursor, may give anything. */
function ageOf(transfer: Partial<PendingTransfer> | null | undefined): number {
  return Date.now() - Number(transfer?.createdAt ?? NaN);
}

function idOf(transfer: Partial<PendingTransfer> | null | undefined): string {
  return typeof transfer?.id === 'string' ? transfer.id : '';
}

function invalidItem(): TransferClientError {
  return new TransferClientError(
    'INVALID_ARGUMENT',
    'Expected a transfer of `pending` to be { id, createdAt }, with a Date or milliseconds since 1970, not in the future.',
  );
}
