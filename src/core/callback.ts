/** The fields of every callback, for each outcome and payment method (service §2.1). */
export interface TransferFacts {
  /** Unique identifier assigned by the service. Callbacks are deduplicated on it (service §6.4). */
  id: string;
  /** Your own identifier of the transfer. */
  externalId: string;
  reference: string;
  amount: number;
  /** Currency code, such as XAF. The service does not publish the complete list. */
  currency: string;
  /** Operator or bank used for the payout. */
  provider: string;
  /** When the transfer became final: ISO 8601, UTC. Not when this attempt was sent. */
  timestamp: string;
  /** The provider's own reference for the operation. */
  externalReference: string;
  /** Present in every callback; its meaning is not documented. */
  vouchercode: string;
}

/** A payout to a mobile money wallet. */
export interface MobileMoneyPayout {
  paymentMethod: 'mobile_money';
  walletNumber: string;
  bankAccount: null;
}

/** A payout to a bank account. The service does not document the fields of the account. */
export interface BankPayout {
  paymentMethod: 'bank';
  walletNumber: null;
  bankAccount: Record<string, unknown>;
}

/**
 * The transfer has succeeded. Final: no correcting callback follows (service §3).
 *
 * @example
 * const thank = ({ data }: TransferSucceeded): void => console.log(`Paid ${data.externalId}`);
 */
export interface TransferSucceeded {
  event: 'transfer.success';
  data: TransferFacts & (MobileMoneyPayout | BankPayout) & { status: 'SUCCESS'; failureReason: null };
}

/**
 * The transfer has failed. Final: no correcting callback follows (service §3).
 *
 * @example
 * const report = ({ data }: TransferFailed): void => console.log(`Not paid: ${data.externalId}`, data.failureReason);
 */
export interface TransferFailed {
  event: 'transfer.failed';
  data: TransferFacts & (MobileMoneyPayout | BankPayout) & { status: 'FAILED'; failureReason: string | null };
}

/**
 * A callback as documented (service §2.1, §6). Narrow it on `event`, and its `data` on `paymentMethod`.
 *
 * @example
 * function describe({ data }: TransferCallback): string {
 *   return data.status === 'FAILED' ? `${data.externalId} failed` : `${data.amount} ${data.currency}`;
 * }
 */
export type TransferCallback = TransferSucceeded | TransferFailed;

/** The event of each final status. The documented service never reverses a success (service §3). */
export const finalEvents = {
  SUCCESS: 'transfer.success',
  FAILED: 'transfer.failed',
  REVERSED: 'transfer.reversed',
} as const;

/** How a transfer may end. */
export type FinalStatus = keyof typeof finalEvents;

/**
 * The fields that the receiver reads: the minimum that a `payload` of `transferService` makes.
 *
 * @example
 * const toText = ({ data }: CallbackShape): string => `${data.externalId}: ${data.status}`;
 */
export interface CallbackShape {
  /** `transfer.reversed` needs `onReversed`. */
  event: (typeof finalEvents)[FinalStatus];
  data: {
    id: string;
    externalId: string;
    status: FinalStatus;
    /** A schema may leave it out, and another service too, of a failure for example. */
    amount?: number | string | undefined;
    currency?: string | undefined;
  };
}

/** An event for `onOther`: its state is `OTHER`, which is not a final status. */
export interface OtherEvent {
  event: 'other';
  /** What the service calls it, such as `charge.paid`. */
  type: string;
  data: {
    /** One for each event of this type: what comes with the same type and id is a copy. */
    id: string;
  };
}

/**
 * What a handler gets: a callback, or an event of `onOther`.
 *
 * @example
 * const isFinal = ({ event }: EventShape): boolean => event !== 'other';
 */
export type EventShape = CallbackShape | OtherEvent;

/** The callbacks among what handlers get. */
export type CallbackOf<E extends EventShape> = Extract<E, CallbackShape>;

/** The members of `C` with this `event`. If the schema does not discriminate on `event`, `C` with `event` narrowed. */
export type CallbackFor<C, E extends CallbackShape['event']> = [Extract<C, { event: E }>] extends [never]
  ? C & { event: E }
  : Extract<C, { event: E }>;

/** 1 to 255 characters. */
const idPattern = /^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,255}$/u;

/**
 * Returns whether `value` can be a callback's id. The id becomes a store key and a field of log lines. A lone surrogate
 * would be stored as U+FFFD, like other such ids. A control, format or separator character could change how a log line
 * is displayed.
 */
export function isCallbackId(value: unknown): value is string {
  return typeof value === 'string' && idPattern.test(value);
}

/**
 * Returns whether a number holds the amount exactly. Beyond 2^53 two amounts could be parsed as the same number, and
 * beyond 1.8e308 every amount is parsed as Infinity.
 */
export function isExact(amount: number): boolean {
  return Number.isFinite(amount) && (!Number.isInteger(amount) || Number.isSafeInteger(amount));
}

const otherPrefix = 'other:';
/**
 * Begins the key of a transfer whose id begins with `other:`. No id has this control character, so none has such a key.
 */
const transferPrefix = 'other\u001f';

/**
 * Returns the id of an event of `onOther`, which is also its key in the store. No two differ in type or id and share
 * one.
 */
export function toOtherId(type: string, id: string): string {
  return `${otherPrefix}${type.replace(/[%:]/g, encodeURIComponent)}:${id}`;
}

/** Returns whether this can be the id of an event of `onOther`. A transfer may also have such an id. */
export function isOtherId(id: string): boolean {
  return /^other:[^:]+:./u.test(id);
}

/** Returns the key of a transfer in the store: its id, unless that could be the id of an event of `onOther`. */
export function toTransferKey(id: string): string {
  return id.startsWith(otherPrefix) ? transferPrefix + id.slice(otherPrefix.length) : id;
}

/** Returns the id of the callback with this key. */
export function toId(key: string): string {
  return key.startsWith(transferPrefix) ? otherPrefix + key.slice(transferPrefix.length) : key;
}

const longestKey = 255;
/** Begins the key of what was refunded. No id has this control character, so none has such a key. */
const reversalPrefix = 'reversed\u001f';

/**
 * Resolves with the key of a record: of the transfer with this key, or of its refund. A store has room for 255
 * characters: of a longer key it gets the SHA-256.
 */
export async function toRecordKey(key: string, record: 'reversal' | undefined): Promise<string> {
  if (record === undefined) return key;
  const joined = reversalPrefix + key;
  if (joined.length <= longestKey) return joined;
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(joined));
  return reversalPrefix + Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const expectedId =
  '1 to 255 characters, none of them a control, format or surrogate character, or a line or paragraph separator';
export const idMessage = `Expected ${expectedId}`;
export const amountMessage =
  'Expected a finite number, of at most 2^53 - 1 if it is whole: larger ones are not parsed exactly';
