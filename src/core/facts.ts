import { shorten, type CallbackShape } from './callback.js';
import { TransferCallbackError } from './errors.js';

/** The facts on which two callbacks with one id must agree: a second one with other facts is a conflict. */
export interface TransferCallbackFacts {
  readonly status: 'SUCCESS' | 'FAILED';
  readonly amount: number | string;
  readonly currency: string;
  /** Cut at 255 characters. */
  readonly externalId: string;
}

/** Returns the facts as text, for the store. Plain JSON, so that a person who looks into the store can read it. */
export function toFingerprint({ data }: CallbackShape): string {
  return JSON.stringify([data.status, data.amount, data.currency, data.externalId]);
}

/** Reads a fingerprint. Returns `undefined` for a text that `toFingerprint` has not written. */
export function parseFingerprint(fingerprint: string): TransferCallbackFacts | undefined {
  try {
    const [status, amount, currency, externalId] = JSON.parse(fingerprint) as unknown[];
    return Object.freeze({
      status,
      amount,
      currency,
      externalId: shorten(String(externalId)),
    }) as TransferCallbackFacts;
  } catch {
    return undefined;
  }
}

/** What identifies a callback. Taken before `confirm` runs, which may change the callback in place. */
export interface CallbackIdentity {
  readonly id: string;
  readonly event: CallbackShape['event'];
  readonly fingerprint: string;
}

/** Returns `confirmed` if it has the same id, event and facts; throws UNCONFIRMED otherwise. */
export function requireSameFacts<C extends CallbackShape>(
  confirmed: C | undefined,
  { id, event, fingerprint }: CallbackIdentity,
): C {
  // Callers from JavaScript may return anything.
  const { data } = (confirmed ?? {}) as { data?: CallbackShape['data'] };
  if (confirmed?.event === event && data?.id === id && toFingerprint(confirmed) === fingerprint) return confirmed;
  throw new TransferCallbackError(
    'UNCONFIRMED',
    'Expected `confirm` to return a callback with the same id, event and facts; they differ.',
  );
}
