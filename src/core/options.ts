import type { Logger } from '../lib/logger.js';
import type { CallbackFor, CallbackOf, CallbackShape, EventShape, OtherEvent, TransferCallback } from './callback.js';
import type { TransferCallbackOutcome } from './outcomes.js';
import type { ConfirmLimits, PayoutService } from './payout-service.js';
import type { CallbackStore } from './store.js';
import type { ResolvedTimes } from './times.js';

/**
 * The second argument of a handler.
 *
 * @example
 * async function book({ data }: TransferSucceeded, { signal }: HandlerContext): Promise<void> {
 *   const response = await fetch(`https://ledger.example/payouts/${data.externalId}`, { method: 'PUT', signal });
 *   if (!response.ok) throw new Error(`The ledger responded ${response.status}`);
 * }
 */
export interface HandlerContext<Tx = undefined> {
  /** Names this delivery in log lines, outcomes and the store, for logs of your own. */
  readonly delivery: string;
  /**
   * Aborts when the handler's deadline has passed, its lease was lost, or the receiver closes. JavaScript cannot
   * stop the handler: pass the signal to every call that can be cancelled.
   */
  readonly signal: AbortSignal;
  /** Where the callback came from, as given to `receive`; `http` for a request. */
  readonly source: string;
  /** The open transaction of a transactional store; `undefined` for the others. */
  readonly tx: Tx;
  /**
   * Calls `call` once the success is recorded, after the response: for a mail or a push that must not go out before the
   * commit. At most once for each recorded success: not for a duplicate, after a failure, or for a success that is
   * `overlapped`. A crash, or a reply to the COMMIT that is late or lost, loses it. An error that it throws is logged
   * and changes nothing. `close` waits for it. Use neither `signal` nor `tx` in it. Throws INVALID_ARGUMENT once the
   * handler has finished.
   */
  readonly afterCommit: (call: () => unknown) => void;
}

/** The second argument of `confirm`. */
export interface CallContext {
  /** Names this delivery in log lines, outcomes and the store, for logs of your own. */
  delivery: string;
  /** Aborts at the deadline of the call, or when the receiver closes. */
  signal: AbortSignal;
  /** Where the callback came from, as given to `receive`. The app sets it, never the sender. */
  source: string;
}

/** Confirms a callback: returns `true`, or what the service sends for its transfer. */
export type Confirm<C extends CallbackShape> = (callback: C, context: CallContext) => unknown;

/**
 * Options of the receiver. The router, the listener and the handler take them too.
 *
 * @example
 * const options: ReceiverOptions = { store, onSuccess, onFailed, handlerTimeoutMs: 5_000 };
 */
export type ReceiverOptions<C extends EventShape = TransferCallback, Tx = undefined> = CommonOptions<C, Tx> &
  Takes<FailedOf<C['event']>, OnFailed<C, Tx>> &
  Takes<Extract<C, { event: 'transfer.reversed' }>, OnReversed<C, Tx>> &
  Takes<Extract<C, OtherEvent>, OnOther<C, Tx>>;

/** A handler of callbacks that the service never sends is left out, and any other handler is required. */
type Takes<Sent, Handler> = [Sent] extends [never] ? { [K in keyof Handler]?: undefined } : Handler;

/** A service whose payouts may be reversed need not have a failure. */
type FailedOf<E> = 'transfer.failed' extends E ? E : 'transfer.reversed' extends E ? never : E;

interface OnFailed<C extends EventShape, Tx> {
  /**
   * Called for a transfer that has failed, and awaited. If it throws, the service sends the callback again. Left out if
   * no state of the `service` is `FAILED`.
   */
  onFailed: (callback: NoInfer<CallbackFor<C, 'transfer.failed'>>, context: HandlerContext<Tx>) => unknown;
}

interface OnReversed<C extends EventShape, Tx> {
  /**
   * Called for a transfer whose money has come back, after `onSuccess` or in its place, and awaited. Only one
   * of `onFailed` and `onReversed` is called for a transfer, once. Required if a state of the `service` is `REVERSED`,
   * and left out otherwise. With it, `retentionMs` has no default, and is at least a day.
   * @default none
   */
  onReversed: (
    callback: NoInfer<CallbackFor<CallbackOf<C>, 'transfer.reversed'>>,
    context: HandlerContext<Tx>,
  ) => unknown;
}

interface OnOther<C extends EventShape, Tx> {
  /**
   * Called for an event that reports no final status, once for each type and id, as the other handlers are called
   * once for each transfer. `confirm` does not run for it. Required if a state of the `service` is `OTHER`, and left
   * out otherwise.
   * @default none
   */
  onOther: (event: NoInfer<Extract<C, OtherEvent>>, context: HandlerContext<Tx>) => unknown;
}

/** The options of every receiver. */
interface CommonOptions<C extends EventShape, Tx> {
  /** Where claims are kept: `redisStore(client)`, `pgStore(pool)`, `memoryStore()` or your own. */
  store: CallbackStore<Tx>;
  /** Called for a transfer that has succeeded, and awaited. If it throws, the service sends the callback again. */
  onSuccess: (callback: NoInfer<CallbackFor<C, 'transfer.success'>>, context: HandlerContext<Tx>) => unknown;
  /**
   * The payout service, made by `transferService` or `defineService`. It may not be `undefined`: the documented service
   * has no verifier.
   * @default the documented service, which is not asked
   */
  service?: PayoutService<C>;
  /**
   * Confirms a callback before it is claimed, copies too. `true` asks the `service` for the transfer, which the handler
   * then gets. The receivers of a service share the limits of `true`, and `{ concurrency, timeoutMs }` are limits of
   * this one. A function of your own returns `true`, or what the service sends for the transfer. Any other value, other
   * facts or a throw are `unconfirmed`.
   * @default false
   */
  confirm?: Confirm<NoInfer<CallbackOf<C>>> | ConfirmLimits | boolean;
  /**
   * How long a verifier may take, in milliseconds; then the delivery is `unauthorized`.
   * @default 5_000
   */
  verifyTimeoutMs?: number | undefined;
  /**
   * How long `confirm` may take, in milliseconds; then the delivery is `unconfirmed`.
   * @default 10_000
   */
  confirmTimeoutMs?: number | undefined;
  /**
   * How long a delivery waits for another one that holds the claim, in milliseconds.
   * @default 10_000
   */
  inFlightWaitMs?: number | undefined;
  /**
   * How long a claim lasts after its last renewal, in milliseconds: under 30 000, the time of the service's first retry
   * (service §6.3).
   * @default 15_000
   */
  leaseMs?: number | undefined;
  /**
   * How long a delivery waits for its handler, even if that runs again, in milliseconds; then it is `timed_out`.
   * @default 20_000
   */
  handlerTimeoutMs?: number | undefined;
  /**
   * How long a single call of the store may take, in milliseconds; 50 ms more are for a reply that a blocked event loop
   * has held up. It must be under a third of `leaseMs`.
   * @default 2_000
   */
  storeTimeoutMs?: number | undefined;
  /**
   * How long a handled callback is remembered, in milliseconds: over 90 000, because the service's fourth attempt
   * comes at least 90 s after the first (service §6.3). The default is 7 days. With `onReversed` there is no default:
   * make it longer than the service takes to reverse a transfer.
   * @default 604_800_000
   */
  retentionMs?: number | undefined;
  /**
   * Called once per delivery, with its outcome, and again, with `late`, if its handler finishes after `timed_out`. Not
   * awaited. An error that it throws is logged.
   * @default none
   */
  onOutcome?: ((outcome: NoInfer<TransferCallbackOutcome<C>>) => unknown) | undefined;
  /**
   * Gets one line per delivery: `info` if it was acknowledged, `warn` if the service's retry resolves it, `error` if a
   * person must act. `false` for none. The default gets warnings and errors.
   * @default console
   */
  logger?: Logger | false | undefined;
}

/** The validated options with defaults applied. */
export interface ResolvedOptions<C extends CallbackShape = TransferCallback, Tx = undefined> extends ResolvedTimes {
  store: CallbackStore<Tx>;
  onSuccess: CommonOptions<C, Tx>['onSuccess'];
  onFailed: OnFailed<C, Tx>['onFailed'] | undefined;
  onReversed: ((callback: CallbackShape, context: HandlerContext<Tx>) => unknown) | undefined;
  onOther: ((event: OtherEvent, context: HandlerContext<Tx>) => unknown) | undefined;
  confirm: Confirm<C> | undefined;
  service: PayoutService<C | OtherEvent>;
  onOutcome: ((outcome: TransferCallbackOutcome) => unknown) | undefined;
  logger: Logger;
}
