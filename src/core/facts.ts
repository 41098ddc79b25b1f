import { toPrintable } from '../lib/text.js';

/**
 * The facts that callbacks with the same id must share. A callback with other facts is a conflict. What the callback of
 * another service has not is missing.
 */
export interface TransferCallbackFacts {
  /** `SUCCESS`, `FAILED` or `REVERSED`, and any string of an event of `onOther`. */
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

/** Returns whether two fingerprints have the same facts. An amount may be written in several ways. */
export function haveSameFacts(one: string, other: string): boolean {
  if (one === other) return true;
  const [first, second] = [parseFingerprint(one), parseFingerprint(other)];
  return (
    first !== undefined &&
    second !== undefined &&
    isSameAmount(first.amount, second.amount) &&
    (['status', 'currency', 'externalId'] as const).every((name) => first[name] === second[name])
  );
}

/**
 * Returns whether two callbacks of a transfer with different statuses are about the same money. A service may leave out
 * amount or currency of one of them.
 */
export function haveSameMoney(one: TransferCallbackFacts, other: TransferCallbackFacts): boolean {
  return (
    one.externalId === other.externalId &&
    (one.currency ?? other.currency) === (other.currency ?? one.currency) &&
    isSameAmount(one.amount ?? other.amount, other.amount ?? one.amount)
  );
}

/** Returns whether these facts are of a failure or a reversal, which refund the transfer, and which may lack some. */
export function isRefund({ status }: TransferCallbackFacts): boolean {
  return status === 'FAILED' || status === 'REVERSED';
}

/** Returns whether `whole` has all facts of `part`, and the same. `part` may lack some. */
export function hasFactsOf(whole: TransferCallbackFacts, part: TransferCallbackFacts): boolean {
  const { status, externalId, amount = whole.amount, currency = whole.currency } = part;
  return haveSameFacts(toFingerprint(whole), toFingerprint({ status, externalId, amount, currency }));
}

/** Returns whether the facts `now` are of the reversal of a success with the facts `before`. */
export function isReversalOf(before: string, now: string): boolean {
  const [success, reversal] = [parseFingerprint(before), parseFingerprint(now)];
  return success?.status === 'SUCCESS' && reversal?.status === 'REVERSED' && haveSameMoney(success, reversal);
}

/**
 * Returns whether two amounts are one: `100`, `"100"` and `"100.00"` are. A service may write a number in the callback
 * and a string in its response. Compares the digits, because two amounts beyond 2^53 may be one number.
 */
export function isSameAmount(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  const [first, second] = [toDecimal(one), toDecimal(other)];
  if (first === undefined || first.sign !== second?.sign) return false;
  const scale = Math.max(first.scale, second.scale);
  const align = (amount: typeof first): string => amount.digits + '0'.repeat(scale - amount.scale);
  const [digits, others] = [align(first), align(second)];
  return digits.padStart(others.length, '0') === others.padStart(digits.length, '0');
}

/** JavaScript writes a small number with an exponent, of at most three digits. */
const decimal = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/i;

function toDecimal(amount: unknown) {
  const [, sign = '', whole, fraction = '', exponent = 0] = decimal.exec(String(amount)) ?? [];
  if (whole === undefined) return undefined;
  // The scale is how many of the digits are behind the point.
  return { sign, digits: whole + fraction, scale: fraction.length - Number(exponent) };
}

/** Parses a fingerprint. Returns `undefined` for a string that is not a JSON list. */
export function parseFingerprint(fingerprint: string): TransferCallbackFacts | undefined {
  return parseFacts(fingerprint, (fact) => fact ?? undefined);
}

/** Returns the facts of a fingerprint for people: frozen, with printable strings. Otherwise as `parseFingerprint`. */
export function showFingerprint(fingerprint: string): TransferCallbackFacts | undefined {
  return parseFacts(fingerprint, (fact) => (typeof fact === 'string' ? toPrintable(fact) : (fact ?? undefined)));
}

function parseFacts(fingerprint: string, read: (fact: unknown) => unknown): TransferCallbackFacts | undefined {
  try {
    const [status, amount, currency, externalId] = (JSON.parse(fingerprint) as unknown[]).map(read);
    return Object.freeze({ status, amount, currency, externalId }) as TransferCallbackFacts;
  } catch {
    return undefined; // It is not JSON, or not a list.
  }
}
