import { isOtherId, toTransferKey } from '../../core/callback.js';
import { requireRecord } from '../../core/records.js';
import type { Transaction } from '../../core/payout-service.js';
import type { StoreRecord } from '../../core/store.js';
import { maxTimerMs, onlyKnownOptions } from '../../lib/checks.js';
import { deadlineSignal, withDeadline } from '../../lib/deadline.js';
import { toReason } from '../../lib/errors.js';
import { lookUpTransfer, readCopy, type Serving } from '../ask.js';
import { requireId, requireReceiver, requireSignal } from '../checks.js';
import { advise } from './advice.js';
import { toVerdict, type TransferVerdict, type RecordReading, type ServiceReading } from './verdict.js';

/** Options of `inspectTransfer`. */
export interface InspectOptions {
  /** The service's id or your own externalId. */
  id: string;
  /** Your receiver. Its `service` is asked, if it can be. */
  receiver: Serving & {
    inspect(id: string): Promise<StoreRecord & { reversal?: StoreRecord | undefined }>;
    readonly options?: { readonly retentionMs?: number };
  };
  /**
   * Rejects with its reason when it aborts.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

interface Inspection<V extends TransferVerdict, S extends ServiceReading['state'], R extends RecordReading['state']> {
  verdict: V;
  service: Extract<ServiceReading, { state: S }>;
  record: Extract<RecordReading, { state: R }>;
  /** The id that was asked for. */
  id: string;
  /** The id under which the record was looked up: the service's, or `id` if the service did not give it. */
  recordId: string;
  /** What the verdict means, for people. */
  meaning: string;
  /** What to do next, for people. */
  advice: string;
}

/**
 * What became of a transfer, and the two readings that show it.
 *
 * @example
 * const isMissed = ({ verdict }: TransferInspection): boolean => verdict === 'missed';
 */
export type TransferInspection =
  | Inspection<'open', 'open', 'free'>
  | Inspection<'in_progress', ServiceReading['state'], Exclude<RecordReading['state'], 'unread'>>
  | Inspection<'handled', 'final', 'free' | 'handled'>
  | Inspection<'missed', 'final', 'free' | 'handled'>
  | Inspection<'conflict', 'final', 'free' | 'handled'>
  | Inspection<'unfounded', 'open', 'free' | 'handled'>
  | Inspection<'unknown', 'unknown', 'free'>
  | Inspection<'undecided', ServiceReading['state'], RecordReading['state']>;

type Facts = Partial<Record<string, unknown>>;

/**
 * Tells what became of one transfer. Compares what the service responds with what the store has recorded. Only reads.
 * If one of the two cannot be read, the verdict is `undecided`, with the error. Rejects with INVALID_ARGUMENT, or with
 * the reason of `signal`.
 *
 * @example
 * const { verdict } = await inspectTransfer({ receiver, id: 'payout-1' });
 */
export async function inspectTransfer(options: InspectOptions): Promise<TransferInspection> {
  onlyKnownOptions(options, ['id', 'receiver', 'signal']);
  const { id, receiver, signal } = options;
  requireId(id);
  requireReceiver(receiver, 'inspect');
  requireSignal(signal);
  let { service, facts } = await readService(options);
  const recordId = 'transaction' in service ? service.transaction.id : id;
  // What the service knows is a transfer, even if an event of `onOther` has the same id.
  const key = 'transaction' in service ? toTransferKey(recordId) : id;
  const record = await readRecord(options, key);
  let verdict = toVerdict(service, record, facts);
  if (verdict === 'unfounded') {
    // The transfer may have become final between the two readings.
    ({ service, facts } = await readService(options));
    verdict = toVerdict(service, record, facts);
  }
  signal?.throwIfAborted();
  const advice = advise(verdict, { service, record, retentionMs: receiver.options?.retentionMs });
  // The table of verdicts combines them with no other readings than the type does.
  return { verdict, service, record, id, recordId, ...advice } as TransferInspection;
}

/** Reads the transfer, and its facts as the receiver would see them. */
async function readService(options: InspectOptions): Promise<{ service: ServiceReading; facts: Facts }> {
  const service = await askFor(options);
  if (service.state !== 'final') return { service, facts: {} };
  const { transaction, callback } = service;
  const known = options.receiver.options?.service;
  const reading = known && readCopy(known, callback);
  return { service, facts: reading?.kind === 'callback' ? { ...reading.fields } : transaction };
}

async function askFor({ id, receiver, signal }: InspectOptions): Promise<ServiceReading> {
  const { ask, seemsFinal } = receiver.options?.service ?? {};
  if (ask === undefined) return { state: 'unread', error: undefined };
  const found = await lookUpTransfer(ask, id, signal ?? new AbortController().signal);
  switch (found.state) {
    case 'final':
      return { ...found, finalAt: findTime(found.transaction) };
    case 'open':
      return { ...found, seemsFinal: seemsFinal?.(found.transaction.status) === true };
    case 'unknown':
      // The service knows its transfers only.
      return isOtherId(id) ? { state: 'unread', error: undefined } : found;
    case 'unread':
      return found;
    case 'skipped':
      throw signal?.reason as Error;
  }
}

async function readRecord({ receiver, signal }: InspectOptions, key: string): Promise<RecordReading> {
  try {
    // The receiver has a deadline of its own for its store.
    const record = await withDeadline(deadlineSignal(maxTimerMs, signal), () => receiver.inspect(key));
    requireRecord(record);
    if (record.reversal !== undefined) requireRecord(record.reversal);
    return record;
  } catch (error) {
    signal?.throwIfAborted();
    return { state: 'unread', error: toReason(error) };
  }
}

function findTime({ timestamp }: Transaction): Date | undefined {
  const at = new Date(typeof timestamp === 'string' ? timestamp : NaN);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
