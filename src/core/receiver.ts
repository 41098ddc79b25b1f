import type { CallbackShape, TransferCallback } from './callback.js';
import { Claims } from './claim.js';
import { confirmCallback } from './confirm.js';
import { deliveryNames } from './delivery.js';
import { TransferCallbackError, wholeNumber } from './errors.js';
import { parseFingerprint } from './facts.js';
import { handleCallback } from './handle.js';
import { HeldLease, type Granted, type LeaseTerms } from './held-lease.js';
import { InFlight } from './in-flight.js';
import { renewalsPerLease, resolveReceiverOptions, type ReceiverOptions, type ResolvedOptions } from './options.js';
import type { Ending, TransferCallbackOutcome } from './outcome.js';
import { ReceivedCallback } from './received.js';
import { report } from './report.js';
import { TimedStore } from './timed-store.js';
import { TimerQueue } from './timers.js';
import { validateCallback } from './validate.js';
import { verifySender } from './verify.js';

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

/** Processes callbacks from any source (HTTP, reconciliation, a queue, a replay) against one record of what was handled. */
export interface TransferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined> {
  /**
   * Validates the callback, claims it, runs the handler and settles. Never rejects: the outcome tells how it ended,
   * and only `processed` and `duplicate` mean that the handler has succeeded.
   */
  receive(callback: unknown, options?: ReceiveOptions<C>): Promise<TransferCallbackOutcome>;
  /**
   * Stops accepting deliveries. Waits up to `timeoutMs` (default 10 000) for running ones, then aborts their signals and
   * waits up to `storeTimeoutMs` more. Resolves with the number of handlers and recordings that still run; their leases
   * expire within `leaseMs`.
   */
  close(options?: { timeoutMs?: number }): Promise<{ unfinished: number }>;
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
    receive: (callback, receiveOptions) => receiver.receiveTransferCallback(callback, receiveOptions ?? {}),
    close: (closeOptions) => receiver.close(closeOptions),
    get closing() {
      return receiver.closing;
    },
    options: receiver.options,
  };
}

class Receiver<C extends CallbackShape, Tx> {
  readonly options: ResolvedOptions<C, Tx>;
  readonly #isCustomSchema: boolean;
  readonly #nameDelivery = deliveryNames();
  readonly #inFlight = new InFlight();
  readonly #claims: Claims<Tx>;
  readonly #leaseTerms: LeaseTerms<Tx>;
  readonly #verifyDeadlines: TimerQueue;
  readonly #confirmDeadlines: TimerQueue;
  readonly #handlerDeadlines: TimerQueue;
  #closed: Promise<{ unfinished: number }> | undefined;

  constructor(options: ResolvedOptions<C, Tx>, isCustomSchema: boolean) {
    this.options = options;
    this.#isCustomSchema = isCustomSchema;
    const store = new TimedStore(options.store, options);
    this.#claims = new Claims(store, options);
    this.#verifyDeadlines = new TimerQueue(options.verifyTimeoutMs);
    this.#confirmDeadlines = new TimerQueue(options.confirmTimeoutMs);
    this.#handlerDeadlines = new TimerQueue(options.handlerTimeoutMs);
    // Heartbeats must not keep the process alive.
    const heartbeats = new TimerQueue(options.leaseMs / renewalsPerLease, { keepAlive: false });
    this.#leaseTerms = { store, times: options, logger: options.logger, heartbeats, inFlight: this.#inFlight };
    if (options.store.processLocal === true && process.env.NODE_ENV === 'production') {
      options.logger.warn({}, 'Transfer callbacks are deduplicated within this process only: use a shared store.');
    }
  }

  get closing(): boolean {
    return this.#closed !== undefined;
  }

  async receiveTransferCallback(
    input: unknown,
    { source = 'direct', verify }: ReceiveOptions<C>,
  ): Promise<TransferCallbackOutcome> {
    this.#inFlight.begin();
    const delivery = this.#nameDelivery();
    const startedAt = performance.now();
    const validated = validateCallback(input, this.options.schema, this.#isCustomSchema);
    const isValid = 'callback' in validated;
    if (verify !== undefined) {
      const seen = isValid ? validated.callback : undefined;
      const refusal = await verifySender(verify, seen, this.#verifyDeadlines, this.options.verifyTimeoutMs);
      if (refusal !== undefined) {
        // Logged only: if the service changes a field that a verifier reads, every delivery is refused, and these
        // issues say why.
        const issues = isValid ? {} : { issues: validated.issues };
        return this.#end({ delivery, source, durationMs: sinceMs(startedAt), ...refusal, ...issues });
      }
    }
    if (!isValid) {
      const verified = verify !== undefined;
      return this.#end({ delivery, source, durationMs: sinceMs(startedAt), ...validated, verified });
    }
    const received = new ReceivedCallback(delivery, source, startedAt, validated.callback);
    return this.#end(received.toOutcome(await this.#process(received)));
  }

  async close({ timeoutMs = 10_000 }: { timeoutMs?: number } = {}): Promise<{ unfinished: number }> {
    wholeNumber('timeoutMs', timeoutMs, 0);
    return (this.#closed ??= this.#finishAll(timeoutMs));
  }

  async #process(received: ReceivedCallback<C>): Promise<Ending> {
    if (this.closing) return { outcome: 'closing' };
    let { callback } = received;
    if (this.options.confirm !== undefined) {
      try {
        callback = await confirmCallback(received, this.options, this.#confirmDeadlines, this.#inFlight);
      } catch (error) {
        return isClosing(error) ? { outcome: 'closing' } : { outcome: 'unconfirmed', error };
      }
    }
    const claim = await this.#claims.claim(received.id, received);
    switch (claim.state) {
      case 'claimed':
        return this.#handle(callback, received, claim);
      case 'settled':
        return claim.fingerprint === received.fingerprint
          ? { outcome: 'duplicate' }
          : conflict(claim.fingerprint, received.fingerprint);
      case 'unavailable':
        return { outcome: 'store_unavailable', error: claim.error };
      case 'in_progress':
      case 'closing':
        return { outcome: claim.state };
    }
  }

  async #handle(callback: C, received: ReceivedCallback<C>, claim: Granted<Tx>): Promise<Ending> {
    const lease = new HeldLease(received.id, claim, this.#leaseTerms);
    if (this.closing) {
      await lease.release();
      return { outcome: 'closing' };
    }
    const { token: delivery, source } = received;
    const context = { delivery, source, signal: lease.signal, tx: claim.lease.tx };
    return handleCallback(callback, context, received, lease, this.options, this.#handlerDeadlines);
  }

  #end(outcome: TransferCallbackOutcome): TransferCallbackOutcome {
    report(outcome, this.options);
    this.#inFlight.end();
    return outcome;
  }

  async #finishAll(timeoutMs: number): Promise<{ unfinished: number }> {
    this.#claims.close();
    await this.#inFlight.waitUntilIdle(timeoutMs);
    this.#inFlight.abortAll(new TransferCallbackError('CLOSING', 'The receiver is closing.'));
    await this.#inFlight.waitUntilIdle(this.options.storeTimeoutMs);
    return { unfinished: this.#inFlight.finishAll() };
  }
}

function sinceMs(startedAt: number): number {
  return performance.now() - startedAt;
}

/** Whether `confirm` was aborted because the receiver closes. */
function isClosing(error: unknown): boolean {
  return error instanceof TransferCallbackError && error.code === 'CLOSING';
}

function conflict(settled: string, received: string): Ending {
  return { outcome: 'conflict', settled: parseFingerprint(settled), received: parseFingerprint(received) };
}
