import type { CallbackShape } from './callback.js';
import { Claims } from './claim.js';
import { confirmCallback } from './confirm.js';
import { deliveryNames } from './delivery.js';
import { wholeNumber } from './checks.js';
import { TransferCallbackError } from './errors.js';
import { showFingerprint } from './facts.js';
import { forgetCallback, type ForgetOptions } from './forget.js';
import { handleCallback } from './handle.js';
import { HeldLease } from './held-lease.js';
import { InFlight } from './in-flight.js';
import { Inspection } from './inspection.js';
import type { Granted, LeaseTerms } from './lease-terms.js';
import type { SafeLogger } from './logger.js';
import { renewalsPerLease, type ResolvedOptions } from './options.js';
import type { Ending, TransferCallbackOutcome } from './outcome.js';
import { ReceivedCallback } from './received-callback.js';
import type { ReceiveOptions, Unfinished } from './receiver.js';
import { report } from './report.js';
import { TimedStore } from './timed-store.js';
import { TimerQueue } from './timers.js';
import { receiveChannel, tracedStore } from './trace.js';
import { validateCallback } from './validate.js';
import { verifySender } from './verify.js';

/** Runs the steps of each delivery: validate, verify, confirm, claim, handle, report. */
export class Receiver<C extends CallbackShape, Tx> {
  readonly options: ResolvedOptions<C, Tx> & { readonly logger: SafeLogger };
  readonly inspection: Inspection<Tx>;
  readonly #isCustomSchema: boolean;
  readonly #nameDelivery = deliveryNames();
  readonly #inFlight = new InFlight();
  readonly #claims: Claims<Tx>;
  readonly #leaseTerms: LeaseTerms<Tx>;
  readonly #verifyDeadlines: TimerQueue;
  readonly #confirmDeadlines: TimerQueue;
  readonly #handlerDeadlines: TimerQueue;
  #closed: Promise<Unfinished> | undefined;

  constructor(options: ResolvedOptions<C, Tx> & { readonly logger: SafeLogger }, isCustomSchema: boolean) {
    this.options = options;
    this.#isCustomSchema = isCustomSchema;
    const { store, logger } = options;
    const timedStore = new TimedStore(tracedStore(store), options);
    this.#claims = new Claims(timedStore, options);
    this.#verifyDeadlines = new TimerQueue(options.verifyTimeoutMs, { extendsOnce: true });
    this.#confirmDeadlines = new TimerQueue(options.confirmTimeoutMs, { extendsOnce: true });
    this.#handlerDeadlines = new TimerQueue(options.handlerTimeoutMs);
    // Heartbeats must not keep the process alive.
    const heartbeats = new TimerQueue(options.leaseMs / renewalsPerLease, { keepAlive: false });
    const inFlight = this.#inFlight;
    this.#leaseTerms = { store: timedStore, times: options, logger, heartbeats, inFlight };
    const nameDelivery = this.#nameDelivery;
    this.inspection = new Inspection({ store, timedStore, times: options, inFlight, nameDelivery });
    if (store.processLocal === true && process.env.NODE_ENV === 'production') {
      logger.warn({}, 'Transfer callbacks are deduplicated within this process only: use a shared store.');
    }
  }

  get closing(): boolean {
    return this.#closed !== undefined;
  }

  /** Never rejects. */
  receive(input: unknown, { source = 'direct', verify }: ReceiveOptions<C>): Promise<TransferCallbackOutcome> {
    const delivery = this.#nameDelivery();
    return receiveChannel.start.hasSubscribers
      ? this.#trace(delivery, input, source, verify)
      : this.#receiveTransferCallback(delivery, input, source, verify);
  }

  forget(id: string, options: ForgetOptions): Promise<boolean> {
    return forgetCallback(id, options, this.options.store, this.inspection, this.options.logger);
  }

  async close({ timeoutMs = 10_000 }: { timeoutMs?: number } = {}): Promise<Unfinished> {
    wholeNumber('timeoutMs', timeoutMs, 0);
    return (this.#closed ??= this.#finishAll(timeoutMs));
  }

  #trace(
    delivery: string,
    input: unknown,
    source: string,
    verify: ReceiveOptions<C>['verify'],
  ): Promise<TransferCallbackOutcome> {
    return receiveChannel.tracePromise(() => this.#receiveTransferCallback(delivery, input, source, verify), {
      delivery,
      source,
    });
  }

  async #receiveTransferCallback(
    delivery: string,
    input: unknown,
    source: string,
    verify: ReceiveOptions<C>['verify'],
  ): Promise<TransferCallbackOutcome> {
    this.#inFlight.begin();
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
        return this.#end({ delivery, source, durationMs: performance.now() - startedAt, ...refusal, ...issues });
      }
    }
    if (!isValid) {
      const verified = verify !== undefined;
      return this.#end({ delivery, source, durationMs: performance.now() - startedAt, ...validated, verified });
    }
    const received = new ReceivedCallback(delivery, source, startedAt, validated.callback);
    return this.#end(received.toOutcome(await this.#process(received)));
  }

  async #process(received: ReceivedCallback<C>): Promise<Ending> {
    if (this.closing) return { outcome: 'closing' };
    let { callback } = received;
    const { confirm, confirmTimeoutMs } = this.options;
    if (confirm !== undefined) {
      try {
        const options = { confirm, confirmTimeoutMs };
        callback = await confirmCallback(received, options, this.#confirmDeadlines, this.#inFlight);
      } catch (error) {
        return isClosing(error) ? { outcome: 'closing' } : { outcome: 'unconfirmed', error };
      }
    }
    const claim = await this.#claims.claim(received.id, received);
    received.endWait();
    switch (claim.state) {
      case 'claimed':
        return await this.#handle(callback, received, claim);
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

  #handle(callback: C, received: ReceivedCallback<C>, claim: Granted<Tx>): Promise<Ending> {
    const lease = new HeldLease(received.id, claim, this.#leaseTerms);
    if (this.closing) return lease.release().then(() => ({ outcome: 'closing' }));
    const { token: delivery, source } = received;
    const context = { delivery, source, signal: lease.signal, tx: claim.lease.tx };
    return handleCallback(callback, context, received, lease, this.options, this.#handlerDeadlines);
  }

  #end(outcome: TransferCallbackOutcome): TransferCallbackOutcome {
    report(outcome, this.options);
    this.#inFlight.end();
    return outcome;
  }

  async #finishAll(timeoutMs: number): Promise<Unfinished> {
    const { storeTimeoutMs, leaseMs, logger } = this.options;
    this.#claims.close();
    await this.#inFlight.waitUntilIdle(timeoutMs);
    this.#inFlight.abortAll(new TransferCallbackError('CLOSING', 'The receiver is closing.'));
    await this.#inFlight.waitUntilIdle(storeTimeoutMs);
    const ids = this.#inFlight.finishAll();
    if (ids.length > 0) {
      const message = `The receiver has closed, and ${ids.length} of its handlers or recordings still run`;
      logger.warn({ ids }, `${message}; their leases expire within ${leaseMs} ms.`);
    }
    return { unfinished: ids.length, ids };
  }
}

/** Whether `confirm` was aborted because the receiver closes. */
function isClosing(error: unknown): boolean {
  return error instanceof TransferCallbackError && error.code === 'CLOSING';
}

function conflict(settled: string, received: string): Ending {
  return { outcome: 'conflict', settled: showFingerprint(settled), received: showFingerprint(received) };
}
