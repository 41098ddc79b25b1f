import { pause, setBackgroundTimer, type Timer } from '../../lib/deadline.js';
import { TransferCallbackError, toReason } from '../../lib/errors.js';
import type { AfterCommit } from '../after-commit.js';
import { DeliveryAborter, type Work } from '../in-flight.js';
import type { Ending } from '../outcomes.js';
import type { Claim } from '../store.js';
import { maxHandlerTimeouts, renewalsPerLease } from '../times.js';
import { callClaim, releaseUnheld, claimCallback, type TimedRequest, type ClaimParts } from './call-store.js';
import type { Line, LineEnd } from './line.js';

const firstRetryPauseMs = 100;

export type SettleEnding = Extract<Ending, { outcome: 'processed' | 'store_unavailable' }>;

/**
 * - `running`: the handler runs, and the lease is renewed.
 * - `overdue`: the handler has run for too long and still runs, and the lease is no longer renewed.
 * - `lost`: the handler still runs, with its signal aborted, because the claim is no longer this delivery's.
 * - `recording`: the handler has succeeded, and the success is being recorded.
 * - `releasing`: the handler has failed, and the claim is being released.
 * - `finished`: nothing is left to do.
 */
type State = 'running' | 'overdue' | 'lost' | 'recording' | 'releasing' | 'finished';

/** A claim that was granted. Its lease is renewed until the claim is settled, released or given up by `finish`. */
export class HeldClaim implements Work {
  readonly key: string;
  readonly id: string;
  readonly #parts: ClaimParts;
  readonly #request: TimedRequest;
  readonly #line: Line;
  readonly #startedAt = performance.now();
  #claim: Claim<unknown>;
  /** What the claim that is held now has as `ended`. */
  #ended: unknown;
  #state: State = 'running';
  #claimCount = 1;
  #hasTurn = true;
  /** Made when a handler reads `signal`. */
  #aborter: DeliveryAborter | undefined;
  #abortReason: Error | undefined;
  #heartbeat: Timer;
  #renewal: Promise<void> | undefined;
  #renewalError: unknown;
  /** The recording that `settle` has left to the background. */
  #recording: Promise<void> | undefined;

  constructor(claim: Claim<unknown>, request: TimedRequest, line: Line, parts: ClaimParts) {
    this.key = line.key;
    this.id = line.id;
    this.#claim = claim;
    this.#request = request;
    this.#line = line;
    this.#parts = parts;
    this.#watchEnd();
    this.#heartbeat = this.#startHeartbeat();
    parts.inFlight.add(this);
  }

  get tx(): unknown {
    return this.#claim.tx;
  }

  /**
   * Whether the handler's writes are undone when the claim is lost, or its success cannot be recorded. Where they are
   * kept, the handler must not run again: the callback is claimed again, and the success recorded until that works.
   */
  get isTransactional(): boolean {
    return this.#parts.options.store.transactional === true;
  }

  get handlerMs(): number | undefined {
    return ['running', 'overdue', 'lost'].includes(this.#state) ? performance.now() - this.#startedAt : undefined;
  }

  get signal(): AbortSignal {
    this.#aborter ??= new DeliveryAborter();
    if (this.#abortReason !== undefined) this.#aborter.abort(this.#abortReason);
    return this.#aborter.signal;
  }

  abort(reason: Error): void {
    this.#abortReason ??= reason;
    this.#aborter?.abort(reason);
  }

  /**
   * Records the handler's success. If that fails, the writes of a transactional store are undone, and the claim is to
   * be released. The other stores are tried again in the background. Never rejects.
   */
  async settle(afterCommit: AfterCommit): Promise<SettleEnding> {
    this.#enter('recording');
    try {
      const overlapped = await this.#record(afterCommit);
      this.finish(this.#success);
      return { outcome: 'processed', overlapped };
    } catch (thrown) {
      const error = toReason(thrown);
      if (this.isTransactional) return { outcome: 'store_unavailable', error };
      // The handler succeeded. Reporting a failure would make the service retry and the handler run again.
      if (this.#hasTurn) this.#line.tell(this.#success);
      this.#recording = this.#recordInBackground(afterCommit);
      return { outcome: 'processed', overlapped: false, error };
    }
  }

  /** Releases the claim. If that fails, the lease expires. Never rejects. */
  async release(): Promise<void> {
    const { logger, leaseMs } = this.#parts.options;
    // A renewal that is running must not claim again after the release.
    this.#enter('releasing');
    try {
      await callClaim(this.#claim, 'release', this.id, this.#request);
    } catch (error) {
      const message = `A claim could not be released; it is free within ${leaseMs} ms.`;
      logger.warn({ ...this.#logFields, err: error }, message);
    }
    this.finish();
  }

  /** Stops all work on the claim. The deliveries that wait get the result, or the next one asks the store. */
  finish(result?: LineEnd): void {
    clearTimeout(this.#heartbeat);
    if (this.#state === 'finished') return;
    this.#state = 'finished';
    this.#passOn(result);
    this.#parts.inFlight.remove(this);
  }

  /** Resolves when nothing is left to do after `settle`. */
  async waitForRest(afterCommit: AfterCommit): Promise<void> {
    // First: a recording in the background starts the functions of `afterCommit` at its end.
    await this.#recording;
    await afterCommit.ended;
  }

  get #logFields(): { delivery: string; id: string } {
    return { delivery: this.#request.token, id: this.id };
  }

  /** What the deliveries that wait get. They do not ask the store, which may not have recorded the success yet. */
  get #success(): LineEnd {
    return { state: 'handled', fingerprint: this.#request.fingerprint };
  }

  /** Lets the next delivery ask the store, once the claim is free or no longer this delivery's. */
  #passOn(result?: LineEnd): void {
    if (this.#hasTurn) {
      if (result === undefined) this.#line.next();
      else this.#line.end(result);
    }
    this.#hasTurn = false;
  }

  /** A claim that was given up stays finished: `close` has stopped waiting for it. */
  #enter(state: State): void {
    if (this.#state !== 'finished') this.#state = state;
  }

  /** Aborts the handler as soon as the store learns that the claim has ended. */
  #watchEnd(): void {
    this.#ended = undefined;
    try {
      const { ended } = this.#claim;
      this.#ended = ended;
      // A JavaScript store may have any value there.
      if (typeof (ended as Partial<Promise<unknown>> | null | undefined)?.then !== 'function') return;
      const lose = (): void => {
        if (this.#ended === ended && this.#state === 'running') this.#lose();
      };
      Promise.resolve(ended).then(lose, () => undefined);
    } catch {
      // A getter has thrown: the next renewal tells.
    }
  }

  #startHeartbeat(): Timer {
    const beat = (): void => {
      this.#heartbeat = this.#startHeartbeat();
      // Run one renewal at a time: while one claims again, a second one would be refused because of that claim.
      this.#renewal = this.#renewAfter(this.#renewal);
    };
    return setBackgroundTimer(beat, this.#parts.options.leaseMs / renewalsPerLease);
  }

  async #renewAfter(previous: Promise<void> | undefined): Promise<void> {
    await previous;
    if (this.#state === 'running' || this.#state === 'recording') await this.#renewLease();
  }

  async #renewLease(): Promise<void> {
    const { logger, handlerTimeoutMs } = this.#parts.options;
    if (this.#state === 'running' && performance.now() - this.#startedAt > maxHandlerTimeouts * handlerTimeoutMs) {
      this.#state = 'overdue';
      clearTimeout(this.#heartbeat);
      logger.error(this.#logFields, 'A handler has exceeded its timeout sixfold; its lease is no longer renewed.');
      this.#passOn();
      return;
    }
    try {
      if (await callClaim(this.#claim, 'renew', this.id, this.#request)) {
        this.#renewalError = undefined;
        return;
      }
      if (this.#state === 'running' && (await this.#claimAgain())) return;
      if (this.#state === 'running') this.#lose();
    } catch (thrown) {
      const error = toReason(thrown);
      // The next renewal runs before the lease expires, unless the event loop is blocked.
      if (this.#renewalError === undefined && this.#state === 'running') {
        const message = 'The lease of a callback could not be renewed; it is tried again.';
        logger.warn({ ...this.#logFields, err: error }, message);
      }
      this.#renewalError = error;
    }
  }

  /**
   * Claims again when the store no longer has this lease. Either renewals failed and it expired, or the store lost its
   * data. Unless another delivery has claimed or settled since, the new claim excludes the others again. It has a
   * new token: if it is granted too late and released, that release must not free the claim the handler runs under.
   */
  async #claimAgain(): Promise<boolean> {
    if (this.isTransactional) return false;
    const { store, logger } = this.#parts.options;
    this.#claimCount += 1;
    // `…/k3x9q2h1-17.2` is the second claim of `…/k3x9q2h1-17`.
    const request = { ...this.#request, token: `${this.#request.token}.${this.#claimCount}` };
    const reply = await claimCallback(store, this.#line, request);
    if (reply.state !== 'claimed') return false;
    if (this.#state === 'running') {
      this.#claim = reply.claim;
      this.#watchEnd();
      logger.warn(this.#logFields, 'The lease of a callback had lapsed under its handler; it was claimed again.');
    } else releaseUnheld(reply.claim, this.id, request);
    return true;
  }

  #lose(): void {
    this.#state = 'lost';
    clearTimeout(this.#heartbeat);
    this.abort(new TransferCallbackError('LEASE_LOST', 'The claim has ended or passed to another delivery.'));
    const details = { ...this.#logFields, ...(this.#renewalError !== undefined && { err: this.#renewalError }) };
    const message = 'The claim of a callback was lost: another delivery may run its handler too.';
    this.#parts.options.logger.error(details, message);
    this.#passOn();
  }

  /** Records the success, and starts `afterCommit` unless another delivery had the claim. Returns whether one had. */
  async #record(afterCommit: AfterCommit): Promise<boolean> {
    const reply: unknown = await callClaim(this.#claim, 'settle', this.id, this.#request);
    // A JavaScript store may resolve with any value: all others are successes.
    const overlapped = (reply as { overlapped?: unknown } | null | undefined)?.overlapped === true;
    // The other delivery may have run its handler too: what follows a success must not run twice.
    if (!overlapped) afterCommit.start(this.#logFields, this.#parts);
    return overlapped;
  }

  async #recordInBackground(afterCommit: AfterCommit): Promise<void> {
    const { logger, retentionMs, leaseMs } = this.#parts.options;
    const giveUpAt = performance.now() + retentionMs;
    let pauseMs = firstRetryPauseMs;
    while (this.#state === 'recording' && performance.now() < giveUpAt) {
      await pause(pauseMs, { keepAlive: false });
      pauseMs = Math.min(2 * pauseMs, leaseMs / renewalsPerLease);
      try {
        const overlapped = await this.#record(afterCommit);
        const message = 'A handled callback was recorded on retry';
        if (overlapped) logger.error(this.#logFields, `${message}; it may have been handled twice.`);
        else logger.warn(this.#logFields, `${message}.`);
        break;
      } catch {
        // Already reported by `settle`.
      }
    }
    this.finish();
  }
}
