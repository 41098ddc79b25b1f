import { invalidArgument } from '../lib/checks.js';
import type { TransferFacts, TransferFailed, TransferSucceeded } from '../core/callback.js';

/**
 * Returns a callback as documented for a transfer that has succeeded, with a new id. `data` overrides its fields.
 * Throws INVALID_ARGUMENT.
 *
 * @example
 * await deliver(app, transferSucceeded({ externalId: 'payout-1', amount: 15_000 }));
 */
export function transferSucceeded(data: Partial<TransferSucceeded['data']> = {}): TransferSucceeded {
  requireFields(data, 'transferSucceeded');
  return {
    event: 'transfer.success',
    data: { ...makeFacts(), ...makePayout(data), status: 'SUCCESS', failureReason: null, ...data },
  };
}

/**
 * Returns a callback as documented for a transfer that has failed, with a new id. `data` overrides its fields.
 * Throws INVALID_ARGUMENT.
 *
 * @example
 * await deliver(app, transferFailed({ externalId: 'payout-1', failureReason: 'Wallet closed' }));
 */
export function transferFailed(data: Partial<TransferFailed['data']> = {}): TransferFailed {
  requireFields(data, 'transferFailed');
  return {
    event: 'transfer.failed',
    data: {
      ...makeFacts(),
      ...makePayout(data),
      status: 'FAILED',
      failureReason: 'Beneficiary not found',
      ...data,
    },
  };
}

/**
 * Throws INVALID_ARGUMENT unless `data` is an object. Any name is a field, because a service may add some, but the
 * letters of an id are none.
 */
function requireFields(data: unknown, name: string): void {
  if (typeof data === 'object' && data !== null && !Array.isArray(data)) return;
  throw invalidArgument('data', 'an object with fields of `data`', data, `${name}({ externalId: 'payout-1' })`);
}

function makeFacts(): TransferFacts {
  const id = crypto.randomUUID();
  const short = id.slice(0, 8);
  return {
    id,
    externalId: `payout-${short}`,
    reference: `REF-${short}`,
    amount: 15_000,
    currency: 'XAF',
    provider: 'MTN',
    timestamp: '2026-01-15T10:30:00.000Z',
    externalReference: `PRV-${short}`,
    vouchercode: '',
  };
}

function makePayout({ paymentMethod }: { paymentMethod?: 'mobile_money' | 'bank' }): object {
  return paymentMethod === 'bank'
    ? // The fields of the account are not documented: this one is invented.
      { paymentMethod, walletNumber: null, bankAccount: { accountNumber: '10005000010123456789' } }
    : { paymentMethod: 'mobile_money', walletNumber: '237670000000', bankAccount: null };
}
