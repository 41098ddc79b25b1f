export type { HttpOptions, TransferCallbackOptions } from './http/options.js';
export {
  basicAuth,
  headerToken,
  transferToken,
  urlToken,
  type Credentials,
  type TransferTokenVerifier,
} from './http/verifiers.js';
export { ipAllowList } from './http/ip-allow-list.js';
export type { SenderRequest, SenderVerifier } from './http/request.js';
export type { Secret } from './http/secrets.js';
export type { Verifier } from './http/verifier.js';
export {
  transferCallbackReceiver,
  type ReceiveOptions,
  type TransferCallbackReceiver,
  type Unfinished,
} from './core/receiver.js';
export type { ForgetOptions, ForgottenCallback, InspectedCallback, StoreProbe } from './core/operator.js';
export type { ConfirmTrace, HandleTrace, ReceiveTrace, StoreTrace } from './core/trace.js';
export type { ConfirmContext, HandlerContext, ReceiverOptions, ResolvedOptions } from './core/options.js';
export type { Logger } from './core/logger.js';
export type { TransferCallbackFacts } from './core/facts.js';
export type { OutcomeName, TransferCallbackOutcome } from './core/outcomes.js';
export {
  transferCallbackSchema,
  type BankPayout,
  type CallbackFor,
  type CallbackShape,
  type Issue,
  type MobileMoneyPayout,
  type TransferCallback,
  type TransferFailed,
  type TransferSucceeded,
} from './core/callback.js';
export type { StandardSchema } from './core/schema.js';
export { readDelivery, type DeliveryOrigin } from './core/delivery.js';
export type { CallbackStore, Claim, ClaimRequest, Lease, StoreRecord } from './core/store.js';
export { TransferCallbackError, type TransferCallbackErrorCode } from './core/errors.js';
export { RetryLater, type RetryLaterOptions } from './core/retry-later.js';
export { memoryStore, type MemoryStoreOptions } from './stores/memory.js';
export { sqlStore, type SqlDatabase, type SqliteDatabase } from './stores/sql/sql-store.js';
export type { DialectOptions, SqlStoreOptions } from './stores/sql/options.js';
export type { SqlStore } from './stores/sql/store.js';
export { pgStore } from './stores/sql/pg.js';
export {
  drizzleStore,
  knexStore,
  kyselyStore,
  mysqlStore,
  postgresJsStore,
  prismaStore,
  sequelizeStore,
  typeormStore,
} from './stores/sql/libraries.js';
export { redisStore, type IoredisClient, type NodeRedisClient, type RedisStoreOptions } from './stores/redis.js';
