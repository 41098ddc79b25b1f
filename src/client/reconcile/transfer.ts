import type { CallbackShape } from '../../core/callback.js';
import type { TransferCallbackOutcome } from '../../core/outcomes.js';
import { messageOf } from '../../lib/text.js';
import type { TransferCallbackReceiver } from '../../core/receiver.js';
import { reconciliation } from '../../core/delivery.js';
import { TransferClientError } from '../errors.js';
import type { Pass } from './pass.js';
import { describeUnhandled } from './errors.js';
import type { PendingTransfer, Reconciled } from './report.js';

const dayMs = 86_400_000;

/** Decides about one transfer of a pass: reads it if it is old enough, and hands it to the receiver if it is final. */
export async function reconcileTransfer<C extends CallbackShape, Tx>(
  transfer: PendingTransfer,
  minAgeMs: number,
  pass: Pick<Pass, 'client' | 'lookUp' | 'noteStore' | 'stop'>,
  receiver: Pick<TransferCallbackReceiver<C, Tx>, 'receive'>,
): Promise<Reconciled> {
  const id = findId(transfer);
  const ageMs = Date.now() - findCreationMs(transfer);
  // A date in the future is a mistake of units or zones, and would keep the transfer pending until then.
  if (!(ageMs > -dayMs)) return { id, result: 'failed', error: invalidItem() };
  if (ageMs < minAgeMs) return { id, result: 'pending', reason: 'too_young' };

  const found = await pass.lookUp(id);
  if (found.result === 'skipped') return { id, result: 'pending', reason: 'not_read' };
  if (found.result === 'open') return { id, result: 'pending', reason: 'not_final' };
  if (found.result !== 'final') return { id, result: found.result, error: found.error };

  const ended = await receiveFinal(found.callback, receiver);
  if (ended instanceof TransferClientError) return { id, result: 'failed', error: ended };
  pass.noteStore(ended.outcome !== 'store_unavailable');
  if (ended.outcome === 'processed' || ended.outcome === 'duplicate') {
    if (ended.event === found.event && ended.id === found.transaction.id) return { id, result: ended.outcome };
    const message =
      'Expected the receiver to end with the event and id that were read; they differ. Look into `schema`.';
    return { id, result: 'failed', error: new TransferClientError('NOT_HANDLED', message) };
  }
  if (ended.outcome !== 'closing') return { id, result: 'failed', ...describeUnhandled(ended, pass.client) };
  pass.stop('closing');
  return { id, result: 'pending', reason: 'not_read' };
}

/** Hands a final transfer to the receiver. This package's receiver never rejects; one of your own may. */
async function receiveFinal<C extends CallbackShape, Tx>(
  callback: unknown,
  receiver: Pick<TransferCallbackReceiver<C, Tx>, 'receive'>,
): Promise<TransferCallbackOutcome | TransferClientError> {
  try {
    return await receiver.receive(callback, { source: reconciliation });
  } catch (cause) {
    return new TransferClientError('NOT_HANDLED', `The receiver rejected: ${messageOf(cause)}`, { cause });
  }
}

/**
 * In milliseconds since 1970; NaN for what is no transfer or no date. JavaScript may give anything, and a cursor of
 * PostgreSQL gives -Infinity for the timestamp `-infinity`.
 */
export function findCreationMs(transfer: Partial<PendingTransfer> | null | undefined): number {
  return new Date(Number(transfer?.createdAt ?? NaN)).getTime();
}

function findId(transfer: Partial<PendingTransfer> | null | undefined): string {
  return typeof transfer?.id === 'string' ? transfer.id : '';
}

function invalidItem(): TransferClientError {
  return new TransferClientError(
    'INVALID_ARGUMENT',
    'Expected a transfer of `pending` to be { id, createdAt }, with a Date or milliseconds since 1970, not in the future.',
  );
}
