import type { CallbackShape } from '../../core/callback.js';
import type { TransferCallbackOutcome } from '../../core/outcomes.js';
import { onlyKnownOptions } from '../../lib/checks.js';
import { messageOf } from '../../lib/text.js';
import type { TransferCallbackReceiver } from '../../core/receiver.js';
import { reconciliation } from '../../core/delivery.js';
import type { Announcement } from '../../core/payout-service.js';
import { lookUpTransfer, requireAsk, type Lookup, type Serving } from '../ask.js';
import { requireId, requireReceiver, requireSignal } from '../checks.js';
import { TransferClientError } from '../errors.js';
import { toShownStatus } from '../open-status.js';
import type { Run } from './run.js';
import { describeUnhandled } from './errors.js';
import { findCreationMs, findDateFault, findId, findItemFault } from './item.js';
import type { PendingTransfer, Reconciled } from './report.js';

/** What is used of a receiver: one made by hand may have no options. */
export type Receiving<C extends CallbackShape, Tx> = Pick<TransferCallbackReceiver<C, Tx>, 'receive'> & Serving;

/** What is used of a run. */
type Reading = Pick<Run, 'lookUp' | 'noteStore' | 'stop'>;

/** Options of `reconcileTransfer`. */
export interface ReconcileOneOptions<C extends CallbackShape, Tx> {
  /** The service's id or your own externalId. */
  id: string;
  /** The receiver of the callbacks, or one on the same store, which knows what was handled before. */
  receiver: Receiving<C, Tx>;
  /**
   * Gives up reading the transfer. A running handler finishes.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

const ignore = (): void => undefined;

/**
 * Reads one transfer, whatever its age, and gives it to the receiver if it is final, with source `reconciliation`. A
 * callback may arrive meanwhile, but the handler runs only once. This is not a reconciliation run, so nothing
 * is published and no metric of runs changes. Rejects with INVALID_ARGUMENT only.
 *
 * @example
 * const { result } = await reconcileTransfer({ receiver, id: 'payout-1' });
 */
export async function reconcileTransfer<C extends CallbackShape, Tx>(
  options: ReconcileOneOptions<C, Tx>,
): Promise<Reconciled> {
  onlyKnownOptions(options, ['id', 'receiver', 'signal']);
  const { id, receiver, signal = new AbortController().signal } = options;
  requireId(id);
  requireReceiver(receiver, 'receive');
  const ask = requireAsk(receiver);
  requireSignal(signal);
  const lookUp = (): Promise<Lookup> => lookUpTransfer(ask, id, signal);
  return readAndReceive(id, { lookUp, noteStore: ignore, stop: ignore }, receiver);
}

/** Decides about one transfer of a run: reads it if it is old enough, and hands it to the receiver if it is final. */
export async function reconcilePending<C extends CallbackShape, Tx>(
  transfer: PendingTransfer,
  minAgeMs: number,
  run: Reading,
  receiver: Receiving<C, Tx>,
): Promise<Reconciled> {
  const id = findId(transfer);
  const error = findItemFault(transfer, 'pending');
  if (error !== undefined) return { id, result: 'failed', error };
  const dateFault = findDateFault(transfer, 'pending');
  const isYoung = dateFault === undefined && Date.now() - findCreationMs(transfer) < minAgeMs;
  if (isYoung) return { id, result: 'pending', reason: 'too_young' };
  const reconciled = await readAndReceive(id, run, receiver);
  // Another error is about more than a date.
  return { ...(dateFault && { error: dateFault }), ...reconciled };
}

/**
 * Decides about one transfer of `paid`: reads it, and hands it to the receiver only if it was reversed. A success must
 * not be handed on: a store that has lost its records would book it again.
 */
export async function reconcilePaid<C extends CallbackShape, Tx>(
  transfer: PendingTransfer,
  run: Reading,
  receiver: Receiving<C, Tx>,
): Promise<Reconciled> {
  const id = findId(transfer);
  const error = findItemFault(transfer, 'paid');
  if (error !== undefined) return { id, paid: true, result: 'failed', error };
  const reconciled = await readAndReceive(id, run, receiver, findUnreversed);
  const fault = findDateFault(transfer, 'paid') ?? findOpenFault(transfer, reconciled);
  return { ...(fault && { error: fault }), ...reconciled, paid: true };
}

/** After so long, in milliseconds, a payout is not open because its success was read too early. */
const longOpenMs = 7 * 86_400_000;

/** Returns the error of a transfer that your books have as paid, and that the service has given as open for long. */
function findOpenFault(transfer: PendingTransfer, reconciled: Reconciled): TransferClientError | undefined {
  const isOpen = 'reason' in reconciled && reconciled.reason === 'not_final';
  if (!isOpen || !(Date.now() - findCreationMs(transfer) > longOpenMs)) return undefined;
  const message =
    'The service reports the transfer as open a week after its creation, and your books have it as paid: its success was forged, or its money is on its way back.';
  return new TransferClientError('NOT_HANDLED', message);
}

/** What was read of a final transfer. */
type Read = Pick<Reconciled, 'id' | 'status'>;

/** Returns what became of a transfer of `paid` that is final and was not reversed. */
function findUnreversed(read: Read, event: Announcement['event']): Reconciled | undefined {
  if (event === 'transfer.reversed') return undefined;
  if (event === 'transfer.success') return { ...read, result: 'unchanged' };
  const message = 'The service reports the transfer as failed, and your books have it as paid. No handler was run.';
  return { ...read, result: 'failed', error: new TransferClientError('NOT_HANDLED', message) };
}

/** Reads a transfer, and hands it to the receiver if it is final, unless `findUnhandled` returns what became of it. */
async function readAndReceive<C extends CallbackShape, Tx>(
  id: string,
  run: Reading,
  receiver: Receiving<C, Tx>,
  findUnhandled: (read: Read, event: Announcement['event']) => Reconciled | undefined = () => undefined,
): Promise<Reconciled> {
  const found = await run.lookUp(id);
  if (found.state === 'skipped') return { id, result: 'pending', reason: 'not_read' };
  if ('error' in found) return { id, result: found.state === 'unread' ? 'failed' : 'unknown', error: found.error };
  const read = { id, status: toShownStatus(found.transaction.status) };
  if (found.state === 'open') return { ...read, result: 'pending', reason: 'not_final' };
  const unhandled = findUnhandled(read, found.event);
  if (unhandled !== undefined) return unhandled;

  const ended = await receiveFinal(found.callback, receiver);
  if (ended instanceof TransferClientError) return { ...read, result: 'failed', error: ended };
  run.noteStore(ended.outcome !== 'store_unavailable');
  if (ended.outcome === 'processed' || ended.outcome === 'duplicate') return { ...read, result: ended.outcome };
  if (ended.outcome !== 'closing') return { ...read, result: 'failed', ...describeUnhandled(ended) };
  run.stop('closing');
  return { id, result: 'pending', reason: 'not_read' };
}

/** Hands a final transfer to the receiver. This package's receiver never rejects; one of your own may. */
async function receiveFinal<C extends CallbackShape, Tx>(
  callback: unknown,
  receiver: Receiving<C, Tx>,
): Promise<TransferCallbackOutcome | TransferClientError> {
  try {
    return await receiver.receive(callback, { source: reconciliation });
  } catch (cause) {
    return new TransferClientError('NOT_HANDLED', `The receiver rejected: ${messageOf(cause)}`, { cause });
  }
}
