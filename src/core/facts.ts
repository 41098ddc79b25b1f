import { toPrintable } from '../lib/text.js';

/**
 * The facts that callbacks with the same id must share. A callback with other facts is a conflict. What the callback of
 * another service has not is missing.
 */
export interface TransferCallbackFacts {
  /** `SUCCESS` or `FAILED`, and any text of an event of `onOther`. */
  readonly status?: string | undefined;
  readonly amount?: number | string | undefined;
  readonly currency?: string | undefined;
  readonly externalId?: string | undefined;
}

/**
 * Returns the facts as text for the store. It is plain JSON, so that people can read it there. A missing fact is
 * `null`.
 */
export function toFingerprint({ status, amount, currency, externalId }: TransferCallbackFacts): string {
  return JSON.stringify([status, amount, currency, externalId]);
}

/** Parses a fingerprint. Returns `undefined` for a text that is no JSON list. */
export function parseFingerprint(fingerprint: string): TransferCallbackFacts | undefined {
  return parseFacts(fingerprint, (fact) => fact ?? undefined);
}

/** Returns the facts of a fingerprint for people: frozen, with printable texts. Otherwise as `parseFingerprint`. */
export function showFingerprint(fingerprint: string): TransferCallbackFacts | undefined {
  return parseFacts(fingerprint, (fact) => (typeof fact === 'string' ? toPrintable(fact) : (fact ?? undefined)));
}

function parseFacts(fingerprint: string, read: (fact: unknown) => unknown): TransferCallbackFacts | undefined {
  let facts: TransferCallbackFacts | undefined;
  try {
    const [status, amount, currency, externalId] = (JSON.parse(fingerprint) as unknown[]).map(read);
    facts = Object.freeze({ status, amount, currency, externalId }) as TransferCallbackFacts;
  } catch {
    // It is no JSON, or no list.
  }
  return facts;
}
