export {
  transferClient,
  type CreateOptions,
  type Transaction,
  type TransferClient,
  type TransferClientOptions,
  type TransferRequest,
} from './client.js';
export { confirmWith, type ConfirmOptions } from './confirm.js';
export {
  TransferClientError,
  type AuthenticationFault,
  type ServiceErrorBody,
  type TransferClientErrorCode,
} from './errors.js';
export {
  reconcileTransfers,
  type PendingTransfer,
  type Reconciled,
  type ReconcileOptions,
  type ReconciliationReport,
} from './reconcile.js';
