import { describeState, invalidArgument } from '../lib/checks.js';
import { TransferCallbackError } from '../lib/errors.js';
import { expectedId, isCallbackId, toId, toTransferKey } from './callback.js';
import { callStore, type ClaimParts } from './claim/call-store.js';
import { toDeliveryName } from './delivery.js';
import type { StoreRecord } from './store.js';

/** Where the store has a record: of a transfer or another event, or of a refund if it has a name. */
interface Target {
  readonly key: string;
  readonly name?: 'reversal';
}

/** A record that was read. The token of its claim is replaced by the name of the delivery. */
export type FoundRecord = Target & { readonly record: StoreRecord };

/** Returns the records that an id may mean: of the transfer, of the event of `onOther`, and of the refund. */
export function toTargets(id: string, { options }: ClaimParts): readonly Target[] {
  const transfer = toTransferKey(id);
  return [
    { key: transfer },
    ...(transfer === id ? [] : [{ key: id }]),
    ...(options.onReversed === undefined ? [] : [{ key: transfer, name: 'reversal' as const }]),
  ];
}

/**
 * Reads the records that an id means: of the transfer, or of the event of `onOther` if only that one is meant, and then
 * of the refund, if there is one. Resolves with none if the store has no `read`.
 */
export async function readRecords(
  id: string,
  parts: ClaimParts,
  isMeant = ({ record }: FoundRecord): boolean => record.state !== 'free',
): Promise<readonly FoundRecord[]> {
  const { store, storeTimeoutMs } = parts.options;
  if (store.read === undefined) return [];
  const readAll = (): Promise<FoundRecord[]> =>
    Promise.all(
      toTargets(id, parts).map(async (target) => {
        const record = requireRecord(await store.read?.(target.key, target.name));
        const { delivery } = record as { delivery?: unknown };
        // No log line contains the token of a second claim.
        const name = typeof delivery === 'string' && { delivery: toDeliveryName(delivery) };
        return { ...target, record: { ...record, ...name } as StoreRecord };
      }),
    );
  const found = await callStore(storeTimeoutMs, readAll);
  const [transfer, other] = found.filter(({ name }) => name === undefined) as [FoundRecord, FoundRecord?];
  const left = other !== undefined && !isMeant(transfer) && isMeant(other) ? transfer : other;
  return found.filter((each) => each !== left && (each.name === undefined || each.record.state !== 'free'));
}

/** Throws INVALID_ARGUMENT unless this can be the id of a callback. */
export function requireId(id: unknown): void {
  if (typeof id !== 'string' || !isCallbackId(toId(id))) throw invalidArgument('id', expectedId, id);
}

/** Returns the error for a store that lacks an optional method. */
export function unsupported(method: 'read' | 'forget'): TransferCallbackError {
  return new TransferCallbackError(
    'STORE_UNSUPPORTED',
    `Expected \`store\` to have \`${method}\`; this store has none.`,
  );
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

/** The store's record of a callback, and `here` while this process runs its handler. */
export type InspectedCallback = StoreRecord & {
  /** How long the handler has been running in this process, in milliseconds. */
  here?: { sinceMs: number };
  /** The record of the refund of the transfer, by a failure or a reversal. Only beside `onReversed`. */
  reversal?: StoreRecord;
};

/** Reads the records of a callback, and whether this process runs its handler. */
export async function inspectCallback(id: string, parts: ClaimParts): Promise<InspectedCallback> {
  requireId(id);
  const [found, reversal] = await readRecords(id, parts);
  if (found === undefined) throw unsupported('read');
  const sinceMs = parts.inFlight.handlerMs(found.key);
  return {
    ...found.record,
    ...(sinceMs !== undefined && { here: { sinceMs } }),
    ...(reversal !== undefined && { reversal: reversal.record }),
  };
}
