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
   * that an untrusted sender cannot tell valid from invalid. Anything but `true`, or a throw: `unauthorized`.
   */
  verify?: ((callback: C | undefined) => boolean | Promise<boolean>) | undefined;
}

/** What `close` has left behind. */
export interface Unfinished {
  /** How many handlers and recordings still run. Their leases expire within `leaseMs`. */
  unfinished: number;
  /** The ids of their callbacks. */
  ids: readonly string[];
}

/** Processes callbacks from any source (HTTP, reconciliation, a queue, a replay) against one record of what was handled. */
export interface TransferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined> {
  /**
   * Validates the callback, claims it, runs the handler and settles. Never rejects: the outcome tells how it ended,
   * and only `processed` and `duplicate` mean that the handler has succeeded.
   */
  receive(callback: unknown, options?: ReceiveOptions<C>): Promise<TransferCallbackOutcome>;
  /**
   * Reads what the store knows of a callback, by the service's id. Changes nothing, and may be old when it arrives.
   * Rejects with INVALID_ARGUMENT, with STORE_UNSUPPORTED if the store has no `read`, with STORE_TIMEOUT after
   * `storeTimeoutMs`, or as the store does.
   */
  inspect(id: string): Promise<InspectedCallback>;
  /**
   * Claims a key of its own in the store and releases it: a full or read-only server, a missing table or a missing right
   * shows where a ping succeeds. Takes at most `storeTimeoutMs`. Never rejects. For the start of a process and for people.
   */
  check(): Promise<StoreCheck>;
  /**
   * Forgets a settled callback, so that its next delivery runs the handler again: for a handler that succeeded wrongly.
   * Runs nothing itself. Resolves with `false`, and changes nothing, unless the record is settled with the fingerprint
   * that was seen. Writes a warning before and after, and rejects if it cannot write the first one. Rejects as `inspect`
   * does, with STORE_UNSUPPORTED if the store has no `forget`.
   */
  forget(id: string, options: ForgetOptions): Promise<boolean>;
  /**
   * Stops accepting deliveries. Waits up to `timeoutMs` (default 10 000) for running ones, then aborts their signals and
   * waits up to `storeTimeoutMs` more. Resolves with what still runs, and logs it.
   */
  close(options?: { timeoutMs?: number }): Promise<Unfinished>;
  /** Whether `close` has begun. */
  readonly closing: boolean;
  /** The validated options with defaults applied. */
  readonly options: Readonly<ResolvedOptions<C, Tx>>;
}

/**
 * Makes the receiver: what happens to a callback, without HTTP. Give it to `transferCallbackRouter`, and use the same
 * one for reconciliation, a queue worker or a replay by hand, so that all of them share one record of what was done.
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
