import { channel } from 'node:diagnostics_channel';
import { describeState, invalidArgument, onlyKnownOptions } from '../lib/checks.js';
import { TransferCallbackError } from '../lib/errors.js';
import { callStore } from './claim/call-store.js';
import { expectedId, isCallbackId, toId, toTransferKey } from './callback.js';
import { toDeliveryName } from './delivery.js';
import { showFingerprint, type TransferCallbackFacts } from './facts.js';
import type { ClaimParts } from './claim/parts.js';
import type { CallbackStore, StoreRecord } from './store.js';

/** The store's record of a callback, and `here` while this process runs its handler. */
export type InspectedCallback = StoreRecord & {
  /** How long the handler has been running in this process, in milliseconds. */
  here?: { sinceMs: number };
  /** The record of the refund of the transfer, by a failure or a reversal. Only beside `onReversed`. */
  reversal?: StoreRecord;
};

/** What reads and forgets records needs of the receiver. */
type Parts<Tx> = ClaimParts<Tx> & { readonly options: { readonly onReversed?: unknown } };

/** Options of `forget`: the record that was seen, who forgets it, and why. */
export interface ForgetOptions {
  /** The fingerprint that `inspect` showed. A record with another one is kept. */
  fingerprint: string;
  /** Who forgets it, for the log. */
  by: string;
  /** Why, for the log. */
  reason: string;
}

/** The message on the diagnostics channel `transfer-callbacks:forgotten`. Frozen. */
export interface ForgottenCallback {
  /** The delivery whose handler had succeeded, if the store knows it. */
  readonly delivery?: string;
  readonly id: string;
  readonly recorded: TransferCallbackFacts | undefined;
  /** Which records of the transfer: a failure and a reversal have two. Only beside `onReversed`. */
  readonly records?: readonly RecordName[];
  /** The facts of the other record of the transfer, which stays: of its success, or of its reversal. */
  readonly stays?: TransferCallbackFacts | undefined;
  readonly by: string;
  readonly reason: string;
}

type RecordName = 'transfer' | 'reversal';

const forgottenChannel = channel('transfer-callbacks:forgotten');

/** Reads the records of a callback, and whether this process runs its handler. */
export async function inspectCallback<Tx>(id: string, parts: Parts<Tx>): Promise<InspectedCallback> {
  requireId(id);
  const [found, reversal] = await readRecords(id, undefined, parts);
  if (found === undefined) throw unsupported('read');
  const sinceMs = parts.inFlight.handlerMs(found.key);
  return {
    ...found.record,
    ...(sinceMs !== undefined && { here: { sinceMs } }),
    ...(reversal !== undefined && { reversal: reversal.record }),
  };
}

/**
 * Forgets a handled callback, so that its next delivery runs the handler again. Never forgets a claim, or a record
 * other than the one that was seen. Resolves with whether the callback was forgotten.
 */
export async function forgetCallback<Tx>(id: string, options: ForgetOptions, parts: Parts<Tx>): Promise<boolean> {
  requireId(id);
  onlyKnownOptions(options, ['fingerprint', 'by', 'reason']);
  const { fingerprint, by, reason } = options;
  for (const [name, text] of Object.entries({ fingerprint, by, reason })) requireText(name, text);
  const { store, logger, onReversed } = parts.options;
  const forget = store.forget?.bind(store);
  if (forget === undefined) throw unsupported('forget');
  const isSeen = (record: StoreRecord): boolean => record.state === 'handled' && record.fingerprint === fingerprint;
  const found = await readRecords(id, isSeen, parts);
  const seen = found.filter(({ record }) => isSeen(record));
  if (found.length > 0 && seen.length === 0) return false;
  const { delivery } = (seen[0]?.record ?? {}) as { delivery?: string };
  const stays = found.map(({ record }) => record).find((record) => record.state === 'handled' && !isSeen(record));
  const details: ForgottenCallback = Object.freeze({
    ...(delivery !== undefined && { delivery }),
    id,
    recorded: showFingerprint(fingerprint),
    ...(stays?.state === 'handled' && { stays: showFingerprint(stays.fingerprint) }),
    by,
    reason,
  });
  const targets = found.length > 0 ? seen : toTargets(id, onReversed !== undefined);
  // Without this line, no log would explain why a handler ran twice. If it cannot be written, forget nothing.
  await logger.warnOrReject(details, 'A handled callback is about to be forgotten.');
  const ended = await forgetAndLog(() => forgetAll(forget, targets, fingerprint), details, parts);
  if (ended !== undefined) forgottenChannel.publish(ended);
  return ended !== undefined;
}

/** Resolves with the records that were forgotten. */
async function forgetAll<Tx>(
  forget: NonNullable<CallbackStore<Tx>['forget']>,
  targets: readonly Target[],
  fingerprint: string,
): Promise<readonly Target[]> {
  const replies = await Promise.all(targets.map(({ key, name }) => forget(key, fingerprint, name)));
  // A store in JavaScript may resolve with any value.
  return targets.filter((_, index) => (replies[index] as unknown) === true);
}

/** Resolves with what was forgotten, or with `undefined` if nothing was. */
async function forgetAndLog<Tx>(
  forget: () => Promise<readonly Target[]>,
  details: ForgottenCallback,
  { options }: Parts<Tx>,
): Promise<ForgottenCallback | undefined> {
  const { logger, storeTimeoutMs, onReversed } = options;
  try {
    const ended = await callStore(storeTimeoutMs, forget);
    if (ended.length === 0) {
      logger.warn(details, 'A handled callback was not forgotten: its record has changed.');
      return undefined;
    }
    const records = ended.map<RecordName>(({ name }) => name ?? 'transfer');
    const forgotten = onReversed === undefined ? details : Object.freeze({ ...details, records });
    logger.warn(forgotten, 'A handled callback was forgotten; its next delivery runs the handler.');
    return forgotten;
  } catch (error) {
    logger.error({ ...details, err: error }, 'A handled callback may have been forgotten: the store failed.');
    throw error;
  }
}

/**
 * Resolves with the record that an id means, as `findRecord` does, and with that of its refund, if there is one. With
 * none if the store has no `read`.
 */
async function readRecords<Tx>(
  id: string,
  isMeant: ((record: StoreRecord) => boolean) | undefined,
  { options }: Parts<Tx>,
): Promise<readonly FoundRecord[]> {
  const { store, storeTimeoutMs, onReversed } = options;
  const read = store.read?.bind(store);
  if (read === undefined) return [];
  return callStore(storeTimeoutMs, async () => {
    const found = await findRecord(read, id, isMeant);
    if (onReversed === undefined) return [found];
    const refund = await readTarget(read, { key: toTransferKey(id), name: 'reversal' });
    return refund.record.state === 'free' ? [found] : [found, refund];
  });
}

/** A record of the store: of a transfer or another event, or of a refund if it has a name. */
interface Target {
  readonly key: string;
  readonly name?: 'reversal';
}

/** Returns the records that an id may mean: of the transfer, and of the event of `onOther`. */
function toTargets(id: string, withRefund = false): readonly Target[] {
  const transfer = toTransferKey(id);
  return [
    { key: transfer },
    ...(transfer === id ? [] : [{ key: id }]),
    ...(withRefund ? [{ key: transfer, name: 'reversal' as const }] : []),
  ];
}

/** What `findRecord` resolves with. */
interface FoundRecord extends Target {
  readonly record: StoreRecord;
}

type Read = (key: string, record?: 'reversal') => Promise<StoreRecord | undefined>;

/** Reads the record that an id means: of the transfer, or of the event of `onOther` if only that one is meant. */
export async function findRecord(
  read: Read,
  id: string,
  isMeant: (record: StoreRecord) => boolean = ({ state }) => state !== 'free',
): Promise<FoundRecord> {
  const found = toTargets(id).map((target) => readTarget(read, target));
  const [ofTransfer, ofOther] = (await Promise.all(found)) as [FoundRecord, FoundRecord?];
  return ofOther === undefined || isMeant(ofTransfer.record) || !isMeant(ofOther.record) ? ofTransfer : ofOther;
}

async function readTarget(read: Read, target: Target): Promise<FoundRecord> {
  return { ...target, record: withDeliveryName(requireRecord(await read(target.key, target.name))) };
}

function requireId(id: unknown): void {
  if (typeof id !== 'string' || !isCallbackId(toId(id))) throw invalidArgument('id', expectedId, id);
}

function requireText(option: string, value: unknown): void {
  if (typeof value !== 'string' || value.trim() === '')
    throw invalidArgument(option, 'a string that is not empty', value);
}

/** Returns the error for a store that lacks an optional method. */
function unsupported(method: 'read' | 'forget'): TransferCallbackError {
  return new TransferCallbackError(
    'STORE_UNSUPPORTED',
    `Expected \`store\` to have \`${method}\`; this store has none.`,
  );
}

/** Replaces the token of the claim by the name of the delivery. No log line contains the token of a second claim. */
function withDeliveryName(record: StoreRecord): StoreRecord {
  const { delivery } = record as { delivery?: unknown };
  if (typeof delivery !== 'string') return record;
  return { ...record, delivery: toDeliveryName(delivery) } as StoreRecord;
}

/** Throws STORE_REPLY_UNEXPECTED unless `record` is one. A store in JavaScript may resolve with any value. */
export function requireRecord(record: StoreRecord | undefined): StoreRecord {
  if (record?.state === 'free' || record?.state === 'claimed') return record;
  if (record?.state === 'handled' && typeof record.fingerprint === 'string') return record;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'Expected `store.read` to resolve with a record: `free`, `claimed`, or `handled` with its fingerprint, got ' +
      `${describeState(record)}.`,
  );
}
