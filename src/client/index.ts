export { transferClient, type TransferClient } from './client.js';
export { confirmWith } from './confirm.js';
export type { TransferRequest } from './create-transfer.js';
export { TransferClientError } from './errors.js';
export type { Transaction } from './get-transaction.js';
export { inspectTransfer, type TransferInspection } from './inspect-transfer.js';
export { ReconciliationError } from './pass-options.js';
export { reconcileTransfers } from './reconcile.js';
export type { PendingTransfer, Reconciled, ReconciliationReport } from './tally.js';
