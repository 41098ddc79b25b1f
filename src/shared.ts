export type { TransferCallbackOptions } from './http/options.js';
export * from './http/verifiers/index.js';
export type { SenderRequest, SenderVerifier, Verifier } from './http/request.js';
export { closeOnSignal } from './http/close-on-signal.js';
export { transferCallbackReceiver, type TransferCallbackReceiver } from './core/receiver.js';
export type { HandlerContext, ReceiverOptions } from './core/options.js';
export type { Logger } from './lib/logger.js';
export type { TransferCallbackOutcome } from './core/outcomes.js';
export { transferCallbackSchema } from './core/documented.js';
export type {
  CallbackShape,
  EventShape,
  TransferCallback,
  TransferFailed,
  TransferSucceeded,
} from './core/callback.js';
export type { PayoutService } from './core/payout-service.js';
export type { CallbackStore, Claim, ClaimReply, ClaimRequest, StoreRecord } from './core/store.js';
export { TransferCallbackError } from './lib/errors.js';
export { RetryLater } from './core/retry-later.js';
export { memoryStore } from './stores/memory.js';
export { sqlStore, type SqlDatabase } from './stores/sql/sql-store.js';
export type { SqlStore } from './stores/sql/store.js';
export { pgStore } from './stores/sql/pg.js';
export { mysqlStore } from './stores/sql/mysql2.js';
export * from './stores/sql/libraries.js';
export { redisStore, type IoredisClient } from './stores/redis/store.js';
