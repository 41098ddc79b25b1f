import { firstPauseMs, Line, LineTable, type Shared } from './line.js';
import { renewalsPerLease, type ResolvedTimes } from './options.js';
import type { Claim, ClaimRequest, Lease } from './store.js';
import { requireClaim, type TimedStore } from './timed-store.js';
import { TimerQueue } from './timers.js';

/** What a delivery learns when it claims its callback. */
export type ClaimResult<Tx> =
  | { state: 'claimed'; lease: Lease<Tx>; request: ClaimRequest; turn: Turn }
  | { state: 'settled'; fingerprint: string }
  | { state: 'in_progress' }
  | { state: 'unavailable'; error: unknown }
  | { state: 'closing' };

/** What a delivery claims with. */
export interface ClaimTerms extends Required<Pick<ClaimRequest, 'token' | 'fingerprint' | 'event' | 'externalId'>> {
  /** Set when the delivery meets another one that holds the claim. */
  waitingSince: number | undefined;
}

/** The turn of the delivery that holds the claim. The deliveries behind it wait until one of its methods is called. */
export class Turn {
  readonly #claims: Claims<unknown>;
  readonly #line: Line;
  readonly #fingerprint: string;
  #isOver = false;

  constructor(claims: Claims<unknown>, line: Line, fingerprint: string) {
    this.#claims = claims;
    this.#line = line;
    this.#fingerprint = fingerprint;
  }

  /**
   * The handler has succeeded. The deliveries that wait, and those that come until `passOn`, learn it without asking the
   * store: as long as the success could not be recorded there, the store does not know it.
   */
  succeeded(): void {
    if (!this.#isOver) this.#line.learn({ state: 'settled', fingerprint: this.#fingerprint });
  }

  /** The claim is free, or no longer this delivery's: the next delivery asks the store. */
  passOn(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#line.hurry();
    this.#claims.next(this.#line);
  }
}

/**
 * Claims callbacks. While another delivery holds the claim it waits, up to `inFlightWaitMs`: if that one succeeds, it
 * learns so; if that one fails, it claims. Deliveries of one callback in one process wait together, so that a thousand
 * copies cost the store as much as one, and learn the end of the handler when it comes.
 */
export class Claims<Tx> {
  readonly #store: TimedStore<Tx>;
  readonly #times: ResolvedTimes;
  readonly #waits: TimerQueue;
  readonly #lines = new LineTable();
  #closing = false;

  constructor(store: TimedStore<Tx>, times: ResolvedTimes) {
    this.#store = store;
    this.#times = times;
    this.#waits = new TimerQueue(times.inFlightWaitMs);
  }

  /** Never rejects. */
  claim(id: string, terms: ClaimTerms): Promise<ClaimResult<Tx>> {
    if (this.#closing) return Promise.resolve({ state: 'closing' });
    const now = performance.now();
    const waitUntil = now + this.#times.inFlightWaitMs;
    const line = this.#lines.get(id);
    if (line !== undefined) return this.#waitAndClaim(line, terms, waitUntil);
    const first = new Line(id, this.#waits);
    this.#lines.add(first);
    return this.#askUntil(waitUntil, first, terms, now);
  }

  /** From now on every delivery that claims or waits is turned away. */
  close(): void {
    this.#closing = true;
    for (const line of this.#lines.all()) line.endAll({ state: 'closing' });
  }

  /** Ends the line: all who wait get `result`. */
  share<S extends Shared>(line: Line, result: S): S {
    this.#lines.delete(line);
    line.endAll(result);
    return result;
  }

  /** Lets the next one of the line ask the store. */
  next(line: Line): void {
    if (!line.callNext()) this.#lines.delete(line);
  }

  async #waitAndClaim(line: Line, terms: ClaimTerms, waitUntil: number): Promise<ClaimResult<Tx>> {
    terms.waitingSince = performance.now();
    const result = await line.wait();
    if (result !== undefined) return result;
    return (await this.#mayAskAgain(line, waitUntil)) ? this.#askUntil(waitUntil, line, terms) : this.#leave(line);
  }

  /** Asks the store, again and again while another process holds the claim. */
  async #askUntil(waitUntil: number, line: Line, terms: ClaimTerms, now = performance.now()): Promise<ClaimResult<Tx>> {
    for (;;) {
      if (this.#closing) return this.share(line, { state: 'closing' });
      const request = this.#toRequest(terms, waitUntil - now);
      let claim: Claim<Tx>;
      line.beginAsking(now);
      try {
        claim = requireClaim(await this.#store.claim(line.id, request));
        if (claim.state === 'claimed' && this.#isLate(now)) claim = await this.#makeSure(line.id, request, claim);
      } catch (error) {
        return this.share(line, { state: 'unavailable', error });
      }
      if (claim.state === 'settled') return this.share(line, claim);
      line.endAsking();
      if (claim.state === 'claimed') {
        return { state: 'claimed', lease: claim.lease, request, turn: new Turn(this, line, terms.fingerprint) };
      }
      terms.waitingSince ??= performance.now();
      if (performance.now() >= waitUntil) return this.#leave(line);
      line.postpone();
      if (!(await this.#mayAskAgain(line, waitUntil))) return this.#leave(line);
      now = performance.now();
    }
  }

  /**
   * Waits until the store is to be asked again, or for the last time. Resolves with `false` if the time is up and the
   * store was asked less than 50 ms ago. Without this, a thousand copies would each ask once more.
   */
  async #mayAskAgain(line: Line, waitUntil: number): Promise<boolean> {
    await line.pauseUntilAsking(waitUntil);
    const now = performance.now();
    return now < waitUntil || now - line.askedAt >= firstPauseMs;
  }

  #toRequest({ token, fingerprint, event, externalId }: ClaimTerms, leftMs: number): ClaimRequest {
    const { leaseMs, retentionMs, storeTimeoutMs } = this.#times;
    // A delivery that may not wait still needs a connection.
    const queueMs = Math.max(storeTimeoutMs, leftMs);
    return { token, fingerprint, leaseMs, retentionMs, timeoutMs: storeTimeoutMs, queueMs, event, externalId };
  }

  /** Whether the reply to what was asked then is read so late that the lease may have lapsed. */
  #isLate(askedAt: number): boolean {
    return performance.now() - askedAt > this.#times.leaseMs / renewalsPerLease;
  }

  /**
   * Does not trust a claim that is read late. A process that was held up (stopped, starved) may read `claimed` when its
   * lease has lapsed and another delivery has settled. So the lease is renewed first, and if that is refused the callback
   * is claimed again.
   */
  async #makeSure(id: string, request: ClaimRequest, late: Claim<Tx>): Promise<Claim<Tx>> {
    let claim = late;
    for (;;) {
      if (claim.state !== 'claimed') return claim;
      const { lease } = claim;
      let askedAt = performance.now();
      try {
        if (!(await this.#store.renew(lease))) {
          askedAt = performance.now();
          claim = requireClaim(await this.#store.claim(id, request));
        }
      } catch (error) {
        this.#store.release(lease).catch(() => undefined); // Failing that, it expires.
        throw error;
      }
      if (!this.#isLate(askedAt)) return claim;
    }
  }

  /** Ends the delivery that asked, as `in_progress`, and lets the next one ask. */
  #leave(line: Line): Shared {
    this.next(line);
    return { state: 'in_progress' };
  }
}
