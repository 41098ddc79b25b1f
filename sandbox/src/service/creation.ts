import type { BankPayout, MobileMoneyPayout } from '../../../src/core/callback.js';
import { callbackUrlFault } from './options.js';

/**
 * The fields of a request that creates a transfer. Only `callbackUrl` is documented (service §2.2). The other names are
 * a guess, taken from the fields of the transaction. The sandbox makes up every field that is missing.
 */
export interface Creation {
  readonly callbackUrl: string | undefined;
  readonly externalId: string | undefined;
  readonly reference: string | undefined;
  readonly amount: number | undefined;
  readonly currency: string | undefined;
  readonly provider: string | undefined;
  readonly payout: MobileMoneyPayout | BankPayout;
}

/** The destinations that the sandbox makes up for a request that names none. */
const madeUp = { walletNumber: '237670000000', bankAccount: { accountNumber: '10005000010123456789' } };

/** Refuses a creation. The status and the message are guesses, because neither is documented (service §7). */
export class CreationFault extends Error {
  readonly status: 400 | 409;

  constructor(message: string, status: 400 | 409 = 400) {
    super(message);
    this.status = status;
  }
}

/**
 * Reads the body of a creation. Throws CreationFault for a known field of another type: making up a value for it
 * would hide the mistake. Ignores unknown fields, because the fields of the service are not documented.
 */
export function parseCreation(body: unknown, { allowOtherHosts }: { allowOtherHosts: boolean }): Creation {
  if (!isObject(body)) throw new CreationFault('Expected the body to be a JSON object.');
  const { callbackUrl } = body;
  const fault = callbackUrl === undefined ? undefined : callbackUrlFault(callbackUrl, allowOtherHosts);
  if (fault !== undefined) throw expected('callbackUrl', fault);
  return {
    callbackUrl: callbackUrl as string | undefined,
    externalId: textIn(body, 'externalId'),
    reference: textIn(body, 'reference'),
    amount: amountIn(body),
    currency: textIn(body, 'currency'),
    provider: textIn(body, 'provider'),
    payout: payoutIn(body),
  };
}

function payoutIn(body: Record<string, unknown>): Creation['payout'] {
  const { paymentMethod = 'mobile_money', bankAccount } = body;
  if (paymentMethod === 'bank') {
    absentIn(body, 'walletNumber', 'bank');
    if (bankAccount !== undefined && !isObject(bankAccount)) throw expected('bankAccount', 'an object');
    return { paymentMethod, walletNumber: null, bankAccount: bankAccount ?? madeUp.bankAccount };
  }
  if (paymentMethod !== 'mobile_money') throw expected('paymentMethod', '"mobile_money" or "bank"');
  absentIn(body, 'bankAccount', 'mobile_money');
  return { paymentMethod, walletNumber: textIn(body, 'walletNumber') ?? madeUp.walletNumber, bankAccount: null };
}

function textIn(body: Record<string, unknown>, name: string): string | undefined {
  const value = body[name];
  if (value === undefined || (typeof value === 'string' && value !== '')) return value;
  throw expected(name, 'a string of at least one character');
}

/** Returns the amount. `JSON.parse` reads `1e999` as Infinity, which JSON could not carry back. */
function amountIn({ amount }: Record<string, unknown>): number | undefined {
  if (amount === undefined || (typeof amount === 'number' && Number.isFinite(amount))) return amount;
  throw expected('amount', 'a number');
}

/** Throws if the field is set. Accepts null too, because a transaction has null there (service §2.1). */
function absentIn(body: Record<string, unknown>, name: string, paymentMethod: string): void {
  if (body[name] === undefined || body[name] === null) return;
  throw expected(name, `absent or null, since \`paymentMethod\` is ${paymentMethod}`);
}

function expected(name: string, what: string): CreationFault {
  return new CreationFault(`Expected \`${name}\` to be ${what}.`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
