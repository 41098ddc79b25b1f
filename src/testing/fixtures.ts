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
  const shared = makeShared(data, 'transferSucceeded');
  return { event: 'transfer.success', data: { ...shared, status: 'SUCCESS', failureReason: null, ...data } };
}

/**
 * Returns a callback as documented for a transfer that has failed, with a new id. `data` overrides its fields.
 * Throws INVALID_ARGUMENT.
 *
 * @example
 * await deliver(app, transferFailed({ externalId: 'payout-1', failureReason: 'Wallet closed' }));
 */
export function transferFailed(data: Partial<TransferFailed['data']> = {}): TransferFailed {
  const shared = makeShared(data, 'transferFailed');
  return {
    event: 'transfer.failed',
    data: { ...shared, status: 'FAILED', failureReason: 'Beneficiary not found', ...data },
  };
}

/**
 * Returns the fields that a success and a failure have alike. Throws INVALID_ARGUMENT unless `data` is an object. Any
 * name is a field, because a service may add some, but the letters of an id are none.
 */
function makeShared(data: unknown, name: string): TransferFacts & object {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    throw invalidArgument('data', 'an object with fields of `data`', data, `${name}({ externalId: 'payout-1' })`);
  }
  const id = crypto.randomUUID();
  const short = id.slice(0, 8);
  const payout: object =
    'paymentMethod' in data && data.paymentMethod === 'bank'
      ? // The fields of the account are not documented: this one is invented.
        { paymentMethod: 'bank', walletNumber: null, bankAccount: { accountNumber: '10005000010123456789' } }
      : { paymentMethod: 'mobile_money', walletNumber: '237670000000', bankAccount: null };
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
    ...payout,
  };
}
