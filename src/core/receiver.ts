import type { CallbackShape, TransferCallback } from './callback.js';
import type { ForgetOptions } from './forget.js';
import type { InspectedCallback, StoreCheck } from './inspection.js';
import { resolveReceiverOptions, type ReceiverOptions, type ResolvedOptions } from './options.js';
import type { TransferCallbackOutcome } from './outcome.js';
import { Receiver } from './receive.js';

/** Options of `receive`. */
export interface ReceiveOptions<C extends CallbackShape = TransferCallback> {
  /** Where the callback comes from, for the handler and `onOutcome`. Default `direct`. */
  source?: string | undefined;
  /**
   * Decides whether the sender is trusted. Runs after validation, and for invalid callbacks too (with `undefined`), so
   * that an untrusted sender cannot tell valid from invalid. Any value but `true`, or a throw, is `unauthorized`.
   */
  verify?: ((callback: C | undefined) => boolean | Promise<boolean>) | undefined;
}

/** The work that still runs after `close`. */
export interface Unfinished {
  /** How many handlers and recordings still run. Their leases expire within `leaseMs`. */
  unfinished: number;
  /** The ids of their callbacks. */
  ids: readonly string[];
}

/** Processes callbacks from any source (HTTP, reconciliation, a queue, a replay) against one record of what was handled. */
export interface TransferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined> {
  /**
   * Validates the callback, claims it, runs the handler and settles. Never rejects, but resolves with the outcome.
   * Only `processed` and `duplicate` mean that the handler has succeeded.
   */
  receive(callback: unknown, options?: ReceiveOptions<C>): Promise<TransferCallbackOutcome>;
  /**
   * Reads the store's record of a callback, by the service's id. Changes nothing. The record may be out of date when it
   * arrives.
   * Rejects with INVALID_ARGUMENT, with STORE_UNSUPPORTED if the store has no `read`, with STORE_TIMEOUT after
   * `storeTimeoutMs`, or as the store does.
   */
  inspect(id: string): Promise<InspectedCallback>;
  /**
   * Claims a new key in the store and releases it. Unlike a ping, this finds a full or read-only server, a missing
   * table and a missing permission. Takes at most `storeTimeoutMs`, extended once. Never rejects. Call it at
   * startup or by hand.
   */
  check(): Promise<StoreCheck>;
  /**
   * Forgets a settled callback, so that its next delivery runs the handler again. Use it after a handler that succeeded
   * by mistake. Resolves with `false`, and changes nothing, unless the record is settled with the fingerprint that was
   * seen. Logs a warning before and after, and rejects if it cannot log the first one. Otherwise rejects as `inspect`
   * does, and with STORE_UNSUPPORTED if the store has no `forget`.
   */
  forget(id: string, options: ForgetOptions): Promise<boolean>;
  /**
   * Stops accepting deliveries. Waits up to `timeoutMs` (default 10 000) for running ones, then aborts their signals and
   * waits up to `storeTimeoutMs` more. Resolves with the work that still runs, and logs it.
   */
  close(options?: { timeoutMs?: number }): Promise<Unfinished>;
  /** Whether `close` has begun. */
  readonly closing: boolean;
  /** The validated options with defaults applied. */
  readonly options: Readonly<ResolvedOptions<C, Tx>>;
}

/**
 * Makes the receiver, which processes callbacks without HTTP. Give it to `transferCallbackRouter`, and use the same one
 * for reconciliation, a queue worker or a manual replay, so that they share one record of what was handled.
 * Throws INVALID_ARGUMENT.
 */
export function transferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined>(
  options: ReceiverOptions<C, Tx>,
): TransferCallbackReceiver<C, Tx> {
  const receiver = new Receiver(resolveReceiverOptions(options), options.schema !== undefined);
  return {
    receive: (callback, receiveOptions) => receiver.receive(callback, receiveOptions ?? {}),
    inspect: (id) => receiver.inspection.inspect(id),
    check: () => receiver.inspection.check(),
    forget: (id, forgetOptions) => receiver.forget(id, forgetOptions),
    close: (closeOptions) => receiver.close(closeOptions),
    get closing() {
      return receiver.closing;
    },
    options: receiver.options,
  };
}
