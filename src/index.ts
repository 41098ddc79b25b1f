export { transferCallbackRouter } from './http/router.js';
export { transferCallbackListener, type EdgeOptions, type TransferCallbackOptions } from './http/listener.js';
export {
  basicAuth,
  headerToken,
  ipAllowList,
  transferToken,
  urlToken,
  type Credentials,
  type Secret,
  type TransferTokenVerifier,
  type Verifier,
} from './http/verify.js';
export { transferCallbackReceiver, type Delivery, type TransferCallbackReceiver } from './core/receiver.js';
export type { HandlerContext, Logger, ReceiverOptions, ResolvedOptions } from './core/options.js';
export type { Issue, OutcomeName, TransferCallbackOutcome } from './core/outcome.js';
export {
  transferCallbackSchema,
  type BankPayout,
  type CallbackShape,
  type MobileMoneyPayout,
  type TransferCallback,
  type TransferFacts,
  type TransferFailed,
  type TransferSucceeded,
} from './core/callback.js';
export type { CallbackStore, Claim, ClaimRequest, Lease } from './core/store.js';
export {
  RetryLater,
  TransferCallbackError,
  type RetryLaterOptions,
  type TransferCallbackErrorCode,
} from './core/errors.js';
export { memoryStore, type MemoryStoreOptions } from './stores/memory.js';
export {
  postgresStore,
  type PgClient,
  type PgClientOf,
  type PgPool,
  type PostgresStore,
  type PostgresStoreOptions,
} from './stores/postgres.js';
export { redisStore, type IoredisClient, type NodeRedisClient, type RedisStoreOptions } from './stores/redis.js';
