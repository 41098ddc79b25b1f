import type { BankPayout, MobileMoneyPayout } from '../core/callback.js';
import { callbackUrlFault } from './options.js';

/**
 * What a request asks for. Beside `callbackUrl` the fields of a creation are not documented (service §2.2). A guess:
 * they are named like those of the transaction. A field that is missing is made up.
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

/** What the sandbox makes up for a request without details of the payout. */
const madeUp = { walletNumber: '237670000000', bankAccount: { accountNumber: '10005000010123456789' } };

/** Why a creation is refused. A guess: neither the status nor the message is documented (service §7). */
export class CreationFault extends Error {
  readonly status: 400 | 409;

  constructor(message: string, status: 400 | 409 = 400) {
    super(message);
    this.status = status;
  }
}

/**
 * Reads the body of a creation. Throws CreationFault for a known field of another type, which would otherwise be
 * replaced without a word. Ignores unknown fields: the service's own are not documented.
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

/** JSON can spell a number beyond what a number can hold: `1e999` is Infinity. */
function amountIn({ amount }: Record<string, unknown>): number | undefined {
  if (amount === undefined || (typeof amount === 'number' && Number.isFinite(amount))) return amount;
  throw expected('amount', 'a number');
}

/** A transaction has null there (service §2.1), so null is as good as nothing. */
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
