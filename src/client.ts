export { transferService, type Transaction, type TransferService } from './client/service/transfer.js';
export type { TransferRequest } from './client/create-transfer.js';
export { TransferClientError } from './client/errors.js';
export { inspectTransfer, type TransferInspection } from './client/inspect/inspect.js';
export { ReconciliationError } from './client/reconcile/errors.js';
export { reconcileTransfers } from './client/reconcile/reconcile.js';
export { reconcileTransfer } from './client/reconcile/transfer.js';
export type { PendingTransfer, Reconciled, ReconciliationReport } from './client/reconcile/report.js';
export { defineService, type ServiceEvent, type ServiceOptions } from './client/service/define.js';
export type { ReadTransfer } from './client/service/read.js';
// With `defineService`, so that a definition needs no entry with Express.
export * from './http/verifiers/index.js';
export type { SenderRequest } from './http/request.js';
