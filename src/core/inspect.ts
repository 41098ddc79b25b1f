import type { ClaimParts } from './claim/rules.js';
import { readRecords, requireId, unsupported } from './records.js';
import type { StoreRecord } from './store.js';

/** The store's record of a callback, and `here` while this process runs its handler. */
export type InspectedCallback = StoreRecord & {
  /** How long the handler has been running in this process, in milliseconds. */
  here?: { sinceMs: number };
  /** The record of the refund of the transfer, by a failure or a reversal. Only beside `onReversed`. */
  reversal?: StoreRecord;
};

/** Reads the records of a callback, and whether this process runs its handler. */
export async function inspectCallback<Tx>(id: string, parts: ClaimParts<Tx>): Promise<InspectedCallback> {
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
