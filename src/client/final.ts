import type { Transaction } from './client.js';

/** A transaction that has become final, as the callback that announces it would carry it; not validated. */
export interface Announced {
  event: 'transfer.success' | 'transfer.failed';
  data: Transaction;
}

/** `undefined` for a transaction that is not final: no status but these two is documented (service §3). */
export function announced(transaction: Transaction): Announced | undefined {
  if (transaction.status === 'SUCCESS') return { event: 'transfer.success', data: transaction };
  if (transaction.status === 'FAILED') return { event: 'transfer.failed', data: transaction };
  return undefined;
}
