import * as z from 'zod/v4';
import { amountMessage, idMessage, isCallbackId, isExact, type TransferCallback } from './callback.js';
import { parseWith } from '../lib/standard-schema.js';
import { toInvalid, type PayoutService } from './payout-service.js';

const facts = {
  id: z.string().refine(isCallbackId, idMessage),
  externalId: z.string(),
  reference: z.string(),
  amount: z.number().refine(isExact, amountMessage),
  currency: z.string(),
  provider: z.string(),
  // Any precision and any offset: rejecting a callback over its fractional digits or its zone would lose it.
  timestamp: z.iso.datetime({ offset: true }),
  externalReference: z.string(),
  vouchercode: z.string(),
};

/** Any object, because its fields are not documented. Not `z.object`: the first versions of zod 4 accept arrays. */
const accountDetails = z.custom<Record<string, unknown>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'Invalid input: expected object',
);
const mobileMoney = { paymentMethod: z.literal('mobile_money'), walletNumber: z.string(), bankAccount: z.null() };
const bank = { paymentMethod: z.literal('bank'), walletNumber: z.null(), bankAccount: accountDetails };
const success = { status: z.literal('SUCCESS'), failureReason: z.null() };
const failure = { status: z.literal('FAILED'), failureReason: z.string().nullable() };

function toEvent<Event extends string, Outcome extends z.ZodRawShape>(event: Event, outcome: Outcome) {
  const data = z.discriminatedUnion('paymentMethod', [
    z.looseObject({ ...facts, ...mobileMoney, ...outcome }),
    z.looseObject({ ...facts, ...bank, ...outcome }),
  ]);
  return z.looseObject({ event: z.literal(event), data });
}

/**
 * The schema of the documented callback (service §2.1, §6). Requires every documented field with its documented type.
 * Keeps undocumented fields.
 *
 * @example
 * const { data } = transferCallbackSchema.parse(JSON.parse(text));
 */
export const transferCallbackSchema: z.ZodType<TransferCallback> = z.discriminatedUnion('event', [
  toEvent('transfer.success', success),
  toEvent('transfer.failed', failure),
]);

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
