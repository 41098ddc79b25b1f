export { transferClient, type TransferClient, type TransferClientOptions } from './client.js';
export { confirmWith, type ConfirmOptions } from './confirm.js';
export type { CreateOptions, TransferRequest } from './create-transfer.js';
export {
  TransferClientError,
  type AuthenticationFault,
  type ServiceErrorBody,
  type TransferClientErrorCode,
} from './errors.js';
export type { Transaction } from './get-transaction.js';
export { inspectTransfer, type InspectOptions, type TransferInspection } from './inspect-transfer.js';
export { ReconciliationError, type Stopped } from './pass-options.js';
export { reconcileTransfers, type ReconciledMessage, type ReconcileOptions } from './reconcile.js';
export type { PendingTransfer, Reconciled, ReconciliationReport } from './tally.js';
export type { TransferVerdict, RecordReading, ServiceReading } from './verdict.js';
