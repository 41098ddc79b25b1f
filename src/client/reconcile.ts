import type { CallbackShape } from '../core/callback.js';
import { invalidOption, onlyKnownOptions, wholeNumber } from '../core/errors.js';
import type { OutcomeName } from '../core/outcome.js';
import type { TransferCallbackReceiver } from '../core/receiver.js';
import type { Transaction, TransferClient } from './client.js';
import { announced } from './final.js';

/** A transfer that is still open in your own books. */
export interface PendingTransfer {
  /** The service's id or your own externalId. */
  id: string;
  /** When you created it: a Date, or milliseconds since 1970. */
  createdAt: Date | number;
}

/** What became of one transfer in a pass. */
export type Reconciled = { id: string } &
  /** The handler has succeeded, now. */
  (
    | { result: 'processed' }
    /** The handler had succeeded before: its callback had come after all. */
    | { result: 'duplicate' }
    /** Not final yet, younger than `minAgeMs`, or not read because the pass was ended. */
    | { result: 'pending' }
    /** The service answered 404. It does not document what it answers for a transfer it does not know (service §7). */
    | { result: 'unknown'; error: unknown }
    /** It could not be read, or the receiver ended with this `outcome`. Never to be taken for a transfer that failed. */
    | { result: 'failed'; outcome?: OutcomeName; error: unknown }
  );

/** How many transfers came to each result. */
export interface ReconciliationReport extends Record<Reconciled['result'], number> {
  /** The first 100 of those that failed or are unknown; `onProgress` is told of all. */
  problems: Extract<Reconciled, { error: unknown }>[];
  /** Whether `signal` ended the pass before `pending` did. */
  aborted: boolean;
}

export interface ReconcileOptions<C extends CallbackShape, Tx> {
  client: Pick<TransferClient, 'getTransaction'>;
  /** The very receiver that the callbacks go to, or one on the same store: it knows what was done already. */
  receiver: Pick<TransferCallbackReceiver<C, Tx>, 'receive'>;
  /** The open transfers, for example rows of a cursor. Taken one by one, as they are needed. */
  pending: AsyncIterable<PendingTransfer> | Iterable<PendingTransfer>;
  /** Younger transfers are left to their callbacks, in milliseconds. Default 600 000. */
  minAgeMs?: number | undefined;
  /** How many transfers are read at a time. Default 4. */
  concurrency?: number | undefined;
  /** Ends the pass: no further transfer is taken, none is read any more, and handlers that run come to their end. */
  signal?: AbortSignal | undefined;
  /** Told of every transfer once. What it throws ends the pass. */
  onProgress?: ((reconciled: Reconciled, report: Readonly<ReconciliationReport>) => void) | undefined;
}

const optionNames = ['client', 'receiver', 'pending', 'minAgeMs', 'concurrency', 'signal', 'onProgress'];
const problemsKept = 100;

/**
 * One pass over the transfers whose callback has not come (service §6.5): reads each, and hands those that are final
 * to the receiver with source `reconciliation`. A callback and a pass may meet, in one process or in two: the handler
 * runs once. Rejects with INVALID_OPTION, or with what `pending` or `onProgress` threw; nothing else ends it.
 */
export async function reconcileTransfers<C extends CallbackShape, Tx>(
  options: ReconcileOptions<C, Tx>,
): Promise<ReconciliationReport> {
  onlyKnownOptions(options, optionNames);
  const { client, receiver, pending, minAgeMs = 600_000, concurrency = 4, signal, onProgress } = options;
  wholeNumber('minAgeMs', minAgeMs, 0, Number.MAX_SAFE_INTEGER);
  wholeNumber('concurrency', concurrency, 1);
  if (typeof (client as Partial<typeof client> | undefined)?.getTransaction !== 'function') {
    throw invalidOption('client', 'made by transferClient()', client);
  }
  if (typeof (receiver as Partial<typeof receiver> | undefined)?.receive !== 'function') {
    throw invalidOption('receiver', 'made by transferCallbackReceiver()', receiver);
  }
  if (
    typeof pending !== 'object' ||
    (pending as unknown) === null ||
    !(Symbol.asyncIterator in pending || Symbol.iterator in pending)
  ) {
    throw invalidOption('pending', 'an iterable or an async iterable', pending);
  }

  const report: ReconciliationReport = {
    processed: 0,
    duplicate: 0,
    pending: 0,
    unknown: 0,
    failed: 0,
    problems: [],
    aborted: false,
  };
  const underWay = new Set<Promise<void>>();
  // One listener on a signal that may outlive many passes, however many are read at a time.
  const reading = new Set<AbortController>();
  const abortReading = (): void => {
    for (const controller of reading) controller.abort(signal?.reason);
  };
  let fault: { error: unknown } | undefined;

  async function reconcileAndReport(transfer: PendingTransfer): Promise<void> {
    const reconciled = await reconcile(transfer);
    report[reconciled.result] += 1;
    if ('error' in reconciled && report.problems.length < problemsKept) report.problems.push(reconciled);
    onProgress?.(reconciled, report);
  }

  async function reconcile(transfer: PendingTransfer): Promise<Reconciled> {
    let id = '';
    try {
      const { createdAt } = transfer;
      ({ id } = transfer);
      const ageMs = Date.now() - Number(createdAt);
      if (Number.isNaN(ageMs)) throw invalidOption('createdAt', 'a Date or milliseconds since 1970', createdAt);
      if (ageMs < minAgeMs) return { id, result: 'pending' };
      const transaction = await read(id);
      if (transaction.id !== id && transaction.externalId !== id) {
        throw new Error('The service answered with another transfer.');
      }
      const callback = announced(transaction);
      if (callback === undefined) return { id, result: 'pending' };
      const ended = await receiver.receive(callback, { source: 'reconciliation' });
      const { outcome } = ended;
      if (outcome === 'processed' || outcome === 'duplicate') return { id, result: outcome };
      const { error = new Error(`The receiver ended with ${outcome}.`) } = ended as { error?: unknown };
      return { id, result: 'failed', outcome, error };
    } catch (error) {
      if (signal?.aborted) return { id, result: 'pending' };
      return { id, result: (error as { status?: unknown } | undefined)?.status === 404 ? 'unknown' : 'failed', error };
    }
  }

  async function read(id: string): Promise<Transaction> {
    const controller = new AbortController();
    reading.add(controller);
    try {
      return await client.getTransaction(id, { signal: controller.signal });
    } finally {
      reading.delete(controller);
    }
  }

  const items = Symbol.asyncIterator in pending ? pending[Symbol.asyncIterator]() : pending[Symbol.iterator]();
  let exhausted = false as boolean;
  /** Wakes the pass while it waits for an item; who is asked for one may not answer for long. */
  let interrupt: (() => void) | undefined;
  const abort = (): void => {
    abortReading();
    interrupt?.();
  };

  async function nextItem(): Promise<PendingTransfer | undefined> {
    const next = await new Promise<IteratorResult<PendingTransfer> | undefined>((resolve, reject) => {
      interrupt = () => {
        resolve(undefined);
      };
      Promise.resolve(items.next()).then(resolve, reject);
    });
    if (next === undefined) return undefined;
    interrupt = undefined;
    exhausted = next.done === true;
    return next.done === true ? undefined : next.value;
  }

  signal?.addEventListener('abort', abort);
  try {
    while (fault === undefined && !exhausted) {
      if (signal?.aborted) {
        report.aborted = true;
        break;
      }
      const transfer = await nextItem();
      if (transfer === undefined) continue;
      const task: Promise<void> = reconcileAndReport(transfer)
        .catch((error: unknown) => {
          fault ??= { error };
          interrupt?.();
        })
        .finally(() => underWay.delete(task));
      underWay.add(task);
      if (underWay.size >= concurrency) await Promise.race(underWay);
    }
    if (!exhausted) {
      const closing = Promise.resolve(items.return?.());
      // In the middle of an item it ends when that has come.
      if (interrupt === undefined) await closing;
      else closing.catch(() => undefined);
    }
  } finally {
    await Promise.all(underWay);
    signal?.removeEventListener('abort', abort);
  }
  if (fault !== undefined) throw fault.error;
  return report;
}
