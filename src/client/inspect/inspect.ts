import { isOtherId, toTransferKey } from '../../core/callback.js';
import { findRecord, requireRecord } from '../../core/inspect.js';
import { hasMethods, invalidArgument, maxTimerMs, onlyKnownOptions, wholeNumber } from '../../lib/checks.js';
import { TransferCallbackError, toReason } from '../../lib/errors.js';
import { deadlineSignal, withDeadline } from '../../lib/deadline.js';
import { receiverDefaults } from '../../core/options.js';
import type { CallbackStore, StoreRecord } from '../../core/store.js';
import {
  hasDefinedService,
  isAskedService,
  readCopy,
  requireAsk,
  type Ask,
  type ReadingClient,
  type Serving,
} from '../ask.js';
import { requireClient, requireId, requireReceiver, requireSignal } from '../checks.js';
import type { Transaction } from '../get-transaction.js';
import { lookUpTransfer } from '../look-up.js';
import { seemsFinal } from '../open-status.js';
import { advise } from './advice.js';
import { toVerdict, type TransferVerdict, type RecordReading, type ServiceReading } from './verdict.js';

/** Options of `inspectTransfer`. */
export interface InspectOptions {
  /** The service's id or your own externalId. */
  id: string;
  /**
   * Reads the transfer of the documented service.
   * @default none: the service is not asked, unless the `receiver` has one that can be
   */
  client?: ReadingClient | undefined;
  /**
   * The store of your receiver. It must have `read`.
   * @default none: without it and without `receiver` no record is read
   */
  store?: Pick<CallbackStore, 'read'> | undefined;
  /**
   * Your receiver, in place of its store.
   * @default none
   */
  receiver?:
    | (Serving & {
        inspect(id: string): Promise<StoreRecord & { reversal?: StoreRecord | undefined }>;
        readonly options?: { readonly retentionMs?: number };
      })
    | undefined;
  /**
   * How long the store may take, in milliseconds. A `receiver` decides it by itself.
   * @default 2_000
   */
  storeTimeoutMs?: number | undefined;
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
  | Inspection<'handled', 'final', 'free' | 'settled'>
  | Inspection<'missed', 'final', 'free' | 'settled'>
  | Inspection<'conflict', 'final', 'free' | 'settled'>
  | Inspection<'unfounded', 'open', 'free' | 'settled'>
  | Inspection<'unknown', 'unknown', 'free'>
  | Inspection<'undecided', ServiceReading['state'], RecordReading['state']>;

type Facts = Partial<Record<string, unknown>>;

const optionNames = ['id', 'client', 'store', 'receiver', 'storeTimeoutMs', 'signal'];

/**
 * Tells what became of one transfer. Compares what the service responds with what the store has recorded. Only reads.
 * If one of the two cannot be read, the verdict is `undecided`, with the error. Rejects with INVALID_ARGUMENT, or with
 * the reason of `signal`.
 *
 * @example
 * const { verdict } = await inspectTransfer({ client, receiver, id: 'payout-1' });
 */
export async function inspectTransfer(options: InspectOptions): Promise<TransferInspection> {
  checkOptions(options);
  const { id, receiver, signal } = options;
  const ask = findAsk(options);
  let { service, facts } = await readService(options, ask);
  const recordId = 'transaction' in service ? service.transaction.id : id;
  // What the service knows is a transfer, even if an event of `onOther` has the same id.
  const key = 'transaction' in service ? toTransferKey(recordId) : id;
  const record = await readRecord(options, key);
  let verdict = toVerdict(service, record, facts);
  if (verdict === 'unfounded') {
    // The transfer may have become final between the two readings.
    ({ service, facts } = await readService(options, ask));
    verdict = toVerdict(service, record, facts);
  }
  signal?.throwIfAborted();
  // The table of verdicts combines them with no other readings than the type does.
  return {
    verdict,
    service,
    record,
    id,
    recordId,
    ...advise(verdict, {
      service,
      record,
      isDefined: hasDefinedService(receiver),
      retentionMs: receiver?.options?.retentionMs,
    }),
  } as TransferInspection;
}

/** Returns how the service is asked, if it can be. */
function findAsk({ client, receiver }: InspectOptions): Ask | undefined {
  const service = receiver?.options?.service;
  const isAsked = client !== undefined || isAskedService(service);
  return isAsked ? requireAsk(client, receiver) : undefined;
}

/** Reads the transfer, and its facts as the receiver would see them. */
async function readService(
  options: InspectOptions,
  ask: Ask | undefined,
): Promise<{ service: ServiceReading; facts: Facts }> {
  const service = await askFor(ask, options);
  if (service.state !== 'final') return { service, facts: {} };
  const { transaction, callback } = service;
  const defined = options.receiver?.options?.service;
  const reading = defined && readCopy(defined, callback);
  return { service, facts: reading?.kind === 'callback' ? { ...reading.fields } : transaction };
}

async function askFor(ask: Ask | undefined, { id, receiver, signal }: InspectOptions): Promise<ServiceReading> {
  if (ask === undefined) return { state: 'unread', error: undefined };
  const found = await lookUpTransfer(ask, id, signal ?? new AbortController().signal);
  switch (found.result) {
    case 'final':
      return {
        state: 'final',
        event: found.event,
        transaction: found.transaction,
        callback: found.callback,
        finalAt: findTime(found.transaction),
      };
    case 'open':
      return {
        state: 'open',
        transaction: found.transaction,
        seemsFinal: !hasDefinedService(receiver) && seemsFinal(found.transaction.status),
      };
    case 'unknown':
      // The service knows its transfers only.
      return isOtherId(id) ? { state: 'unread', error: undefined } : { state: 'unknown', error: found.error };
    case 'failed':
      return { state: 'unread', error: found.error };
    case 'skipped':
      throw signal?.reason as Error;
  }
}

async function readRecord(
  { store, receiver, signal, ...options }: InspectOptions,
  key: string,
): Promise<RecordReading> {
  // A receiver has a deadline of its own for its store.
  const { storeTimeoutMs = receiver?.options === undefined ? receiverDefaults.storeTimeoutMs : maxTimerMs } = options;
  if (store === undefined && receiver === undefined) return { state: 'unread', error: undefined };
  const tooLate = (): Error =>
    new TransferCallbackError('STORE_TIMEOUT', `The store did not reply within ${storeTimeoutMs} ms.`);
  try {
    return await withDeadline(deadlineSignal(storeTimeoutMs, signal, tooLate), async () => {
      if (receiver !== undefined) return requireInspected(await receiver.inspect(key));
      return (await findRecord(async (each) => store?.read?.(each), key)).record;
    });
  } catch (error) {
    signal?.throwIfAborted();
    return { state: 'unread', error: toReason(error) };
  }
}

function requireInspected(record: StoreRecord & { reversal?: StoreRecord | undefined }): RecordReading {
  requireRecord(record);
  if (record.reversal !== undefined) requireRecord(record.reversal);
  return record;
}

function findTime({ timestamp }: Transaction): Date | undefined {
  const at = new Date(typeof timestamp === 'string' ? timestamp : NaN);
  return Number.isNaN(at.getTime()) ? undefined : at;
}

function checkOptions(options: InspectOptions): void {
  onlyKnownOptions(options, optionNames);
  const { id, client, store, receiver, storeTimeoutMs, signal } = options;
  requireId(id);
  if (client === undefined && store === undefined && receiver === undefined) {
    throw invalidArgument(
      'client',
      'given, or `store` or `receiver`',
      client,
      'inspectTransfer({ client, store, id })',
    );
  }
  if (store !== undefined && receiver !== undefined) {
    throw invalidArgument(
      'store',
      'left out beside `receiver`, which has it',
      store,
      'inspectTransfer({ client, receiver, id })',
    );
  }
  if (client !== undefined) requireClient(client);
  if (store !== undefined && !hasMethods(store, 'read')) {
    throw invalidArgument('store', 'a store that has `read`', store, 'store: redisStore(client)');
  }
  if (receiver !== undefined) requireReceiver(receiver, 'inspect');
  if (storeTimeoutMs !== undefined) wholeNumber('storeTimeoutMs', storeTimeoutMs, { min: 1, example: 2_000 });
  requireSignal(signal);
}
