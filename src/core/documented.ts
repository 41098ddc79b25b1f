import { parseWith, type Issue } from '../lib/standard-schema.js';
import type { EventShape, TransferCallback } from './callback.js';
import { transferCallbackSchema } from './callback-schema.js';
import { toIds, type Ids, type PayoutService, type Reading } from './payout-service.js';

/** The documented service (service §2, §6), which cannot be asked. */
export const documentedService: PayoutService<TransferCallback> = {
  readCallback(given) {
    const parsed = parseWith(transferCallbackSchema, given);
    if ('issues' in parsed) return toInvalid(given, parsed.issues);
    const { event, data } = parsed.value;
    const { id, externalId, status, amount, currency, timestamp } = data;
    const fields = { event, type: undefined, id, externalId, status, amount, currency, timestamp };
    return { kind: 'callback', state: status, callback: parsed.value, fields };
  },
  meanings: new Set(['SUCCESS', 'FAILED']),
};

/** Returns the reading of a callback that is not as documented. */
export function toInvalid<E extends EventShape>(given: unknown, issues: readonly Issue[], error?: unknown): Reading<E> {
  return { kind: 'invalid', issues, ids: readIds(given), error };
}

/** Returns the ids of an invalid callback, if they can be read, so that people can find the payout. */
function readIds(payload: unknown): Ids {
  try {
    const { data } = payload as { data?: unknown };
    const read = (name: string): string | undefined =>
      [data, payload]
        .map((each) => (each as Record<string, unknown> | null | undefined)?.[name])
        .map((value) => (Number.isSafeInteger(value) ? String(value) : value))
        .find((value) => typeof value === 'string');
    return toIds(read('id'), read('externalId'));
  } catch {
    // The payload has no fields, or reading them throws.
    return {};
  }
}
