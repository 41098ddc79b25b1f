import type { Transaction } from './get-transaction.js';

/** The source under which reconciliation hands transfers to the receiver. */
export const reconciliation = 'reconciliation';

/** A final transaction in the shape of the callback that announces it; not validated. */
export interface AnnouncedTransaction {
  event: 'transfer.success' | 'transfer.failed';
  data: Transaction;
}

/** `undefined` for a transaction that is not final: only these two statuses are documented (service §3). */
export function toCallback(transaction: Transaction): AnnouncedTransaction | undefined {
  if (transaction.status === 'SUCCESS') return { event: 'transfer.success', data: transaction };
  if (transaction.status === 'FAILED') return { event: 'transfer.failed', data: transaction };
  return undefined;
}
