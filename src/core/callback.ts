import { z } from 'zod';
import { TransferCallbackError } from './errors.js';

/** What every callback carries, whatever its outcome and payment method (service §2.1). */
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

/** The transfer has succeeded. Final: no correcting callback follows (service §3). */
export interface TransferSucceeded {
  event: 'transfer.success';
  data: TransferFacts & (MobileMoneyPayout | BankPayout) & { status: 'SUCCESS'; failureReason: null };
}

/** The transfer has failed. Final: no correcting callback follows (service §3). */
export interface TransferFailed {
  event: 'transfer.failed';
  data: TransferFacts & (MobileMoneyPayout | BankPayout) & { status: 'FAILED'; failureReason: string | null };
}

/** A callback as documented (service §2.1, §6): narrow it on `event`, and its `data` on `paymentMethod`. */
export type TransferCallback = TransferSucceeded | TransferFailed;

/** What the receiver itself needs of a callback, and so the least that a `schema` of your own must give. */
export interface CallbackShape {
  event: 'transfer.success' | 'transfer.failed';
  data: {
    id: string;
    externalId: string;
    status: 'SUCCESS' | 'FAILED';
    amount: number | string;
    currency: string;
  };
}

/**
 * `C` where it is used but must not be inferred from: only `schema` says what it is. A handler with parameter types of
 * its own, or a verifier that takes any callback, would otherwise decide it for all the others.
 */
export type Given<C> = [C][C extends unknown ? 0 : never];

const facts = {
  // The id becomes a store key and a field of log lines. A lone surrogate would be stored as U+FFFD and meet
  // other ids there; a control or format character would rewrite the line it is printed in.
  id: z
    .string()
    .min(1)
    .max(255)
    .regex(/^[^\p{Cc}\p{Cf}\p{Cs}]*$/u, 'Invalid string: control, format or surrogate character'),
  externalId: z.string(),
  reference: z.string(),
  amount: z.number(),
  currency: z.string(),
  provider: z.string(),
  // Any number of digits after the second: a callback refused over a millisecond would be lost.
  timestamp: z.iso.datetime(),
  externalReference: z.string(),
  vouchercode: z.string(),
};

const mobileMoney = { paymentMethod: z.literal('mobile_money'), walletNumber: z.string(), bankAccount: z.null() };
const bank = { paymentMethod: z.literal('bank'), walletNumber: z.null(), bankAccount: z.looseObject({}) };
const success = { status: z.literal('SUCCESS'), failureReason: z.null() };
const failure = { status: z.literal('FAILED'), failureReason: z.string().nullable() };

/**
 * The documented callback (service §2.1, §6), exactly: every documented field with its documented type.
 * Fields that the documentation does not know are kept.
 */
export const transferCallbackSchema: z.ZodType<TransferCallback> = z.discriminatedUnion('event', [
  z.looseObject({
    event: z.literal('transfer.success'),
    data: z.discriminatedUnion('paymentMethod', [
      z.looseObject({ ...facts, ...mobileMoney, ...success }),
      z.looseObject({ ...facts, ...bank, ...success }),
    ]),
  }),
  z.looseObject({
    event: z.literal('transfer.failed'),
    data: z.discriminatedUnion('paymentMethod', [
      z.looseObject({ ...facts, ...mobileMoney, ...failure }),
      z.looseObject({ ...facts, ...bank, ...failure }),
    ]),
  }),
]);

/** Throws INVALID_OPTION unless a schema of the user's has given what the receiver needs: from JavaScript it may not. */
export function requireCallback(given: unknown): void {
  const { event, data } = (given ?? {}) as { event?: unknown; data?: Record<string, unknown> | null };
  const { id, externalId, status, amount, currency } = data ?? {};
  const fits =
    (event === 'transfer.success' || event === 'transfer.failed') &&
    (status === 'SUCCESS' || status === 'FAILED') &&
    [id, externalId, currency].every((field) => typeof field === 'string') &&
    (typeof amount === 'number' || typeof amount === 'string');
  if (fits) return;
  throw new TransferCallbackError(
    'INVALID_OPTION',
    'Expected `schema` to give `event` and `data` with id, externalId, status, amount and currency, as documented.',
  );
}

/**
 * The facts on which two callbacks with one id must agree, as text: a second one with other facts is a conflict,
 * not a duplicate. Plain JSON, so that whoever looks into the store sees what had been settled.
 */
export function fingerprintOf({ data }: CallbackShape): string {
  return JSON.stringify([data.status, data.amount, data.currency, data.externalId]);
}

/** Returns `confirmed` if it is about the same transfer and says the same of it; throws UNCONFIRMED otherwise. */
export function requireSameFacts<C extends CallbackShape>(callback: C, confirmed: C | undefined): C {
  if (
    confirmed?.event === callback.event &&
    confirmed.data.id === callback.data.id &&
    fingerprintOf(confirmed) === fingerprintOf(callback)
  ) {
    return confirmed;
  }
  throw new TransferCallbackError('UNCONFIRMED', '`confirm` did not hand back a callback with the same id and facts.');
}
