import { describeGiven } from '../../lib/checks.js';
import { describeHolder } from '../../core/delivery.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { StoreRecord } from '../../core/store.js';

/** What the key of a callback holds. */
type RedisRecord =
  | { readonly state: 'claimed'; readonly token: string }
  | { readonly state: 'handled'; readonly token: string; readonly fingerprint: string };

/** Renders the record of a delivery that holds its callback. */
export function renderClaimed(token: string): string {
  return `claimed ${token}`;
}

/** Renders the record of a callback whose handler has succeeded. */
export function renderHandled(token: string, fingerprint: string): string {
  return `handled ${token} ${fingerprint}`;
}

/** Parses what a key holds. Throws STORE_RECORD_UNREADABLE. */
export function parseRecord(key: string, value: unknown): RedisRecord {
  const [state, token, ...facts] = String(value).split(' ');
  if (token !== undefined) {
    if (state === 'claimed') return { state, token };
    if (state === 'handled' && facts.length > 0) return { state, token, fingerprint: facts.join(' ') };
  }
  throw new TransferCallbackError(
    'STORE_RECORD_UNREADABLE',
    `The key ${key} holds something other than a callback record.`,
  );
}

/** Translates the reply to `readScript` for people. Throws STORE_REPLY_UNEXPECTED and STORE_RECORD_UNREADABLE. */
export function toStoreRecord(key: string, reply: unknown): StoreRecord {
  if (!Array.isArray(reply)) {
    throw new TransferCallbackError(
      'STORE_REPLY_UNEXPECTED',
      `Expected the reply to EVAL to be an array, got ${describeGiven(reply)}.`,
    );
  }
  const [value, left] = reply as unknown[];
  if (value === null || value === undefined) return { state: 'free' };
  const record = parseRecord(key, value);
  // A client can be set to reply with strings for numbers. Negative if the time is not known.
  const leftMs = Number(left);
  const holder = describeHolder(record.token);
  if (record.state === 'claimed') {
    return {
      state: 'claimed',
      delivery: record.token,
      ...holder,
      ...(leftMs >= 0 && { leaseLeftMs: leftMs }),
    };
  }
  return {
    state: 'handled',
    fingerprint: record.fingerprint,
    delivery: record.token,
    // The record has no time. The delivery came in before it was handled.
    ...(holder.since && { handledAt: holder.since }),
    ...(leftMs >= 0 && { expiresAt: new Date(Date.now() + leftMs) }),
  };
}
