export { transferClient, type TransferClient } from './client/client.js';
export { confirmWith } from './client/confirm.js';
export type { TransferRequest } from './client/create-transfer.js';
export { TransferClientError } from './client/errors.js';
export type { Transaction } from './client/get-transaction.js';
export { inspectTransfer, type TransferInspection } from './client/inspect/inspect.js';
export { ReconciliationError } from './client/reconcile/errors.js';
export { reconcileTransfers } from './client/reconcile/reconcile.js';
export type { PendingTransfer, Reconciled, ReconciliationReport } from './client/reconcile/report.js';
