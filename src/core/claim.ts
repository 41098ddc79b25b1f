import { firstPauseMs, Line, LineTable, type Shared } from './line.js';
import { renewalsPerLease, type ResolvedTimes } from './options.js';
import type { Claim, ClaimRequest, Lease } from './store.js';
import { requireClaim, type TimedStore } from './timed-store.js';
import { TimerQueue } from './timers.js';

/** The result of a delivery's claim. */
export type ClaimResult<Tx> =
  | { state: 'claimed'; lease: Lease<Tx>; request: ClaimRequest; turn: Turn }
  | { state: 'settled'; fingerprint: string }
  | { state: 'in_progress' }
  | { state: 'unavailable'; error: unknown }
  | { state: 'closing' };

/** The delivery's part of a claim request. */
export interface ClaimTerms extends Required<Pick<ClaimRequest, 'token' | 'fingerprint' | 'event' | 'externalId'>> {
  /** When the delivery began to wait for another one that holds the claim. */
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
   * Marks the callback as settled for the deliveries that wait, and for those that arrive before `passOn`. They do not
   * ask the store, which may not have recorded the success yet.
   */
  succeeded(): void {
    if (!this.#isOver) this.#line.learn({ state: 'settled', fingerprint: this.#fingerprint });
  }

  /** Lets the next delivery ask the store. Call it when the claim is free or no longer this delivery's. */
  passOn(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#line.hurry();
    this.#claims.next(this.#line);
  }
}

/**
 * Claims callbacks. A delivery waits up to `inFlightWaitMs` while another one holds the claim. If that one succeeds,
 * the result is `settled`; if it fails, the waiting delivery claims. Deliveries of one callback in one process share a
 * line: a thousand copies cost the store as much as one, and all get the handler's result as soon as it succeeds.
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

  /** Claims a callback, and waits while another delivery holds the claim. Never rejects. */
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

  /** Ends every wait with `closing`, and every later claim too. */
  close(): void {
    this.#closing = true;
    for (const line of this.#lines.all()) line.endAll({ state: 'closing' });
  }

  /** Removes the line, and gives `result` to every delivery that waits in it. */
  share<S extends Shared>(line: Line, result: S): S {
    this.#lines.delete(line);
    line.endAll(result);
    return result;
  }

  /** Lets the next delivery in the line ask the store, or removes an empty line. */
  next(line: Line): void {
    if (!line.callNext()) this.#lines.delete(line);
  }

  async #waitAndClaim(line: Line, terms: ClaimTerms, waitUntil: number): Promise<ClaimResult<Tx>> {
    terms.waitingSince = performance.now();
    const result = await line.wait();
    if (result !== undefined) return result;
    return (await this.#mayAskAgain(line, waitUntil)) ? this.#askUntil(waitUntil, line, terms) : this.#leave(line);
  }

  /** Asks the store repeatedly while another process holds the claim. */
  async #askUntil(waitUntil: number, line: Line, terms: ClaimTerms, now = performance.now()): Promise<ClaimResult<Tx>> {
    for (;;) {
      if (this.#closing) return this.share(line, { state: 'closing' });
      const request = this.#toRequest(terms, waitUntil - now);
      let claim: Claim<Tx>;
      line.beginAsking(now);
      try {
        claim = requireClaim(await this.#store.claim(line.id, request));
        if (this.#isLate(now)) claim = await this.#makeSure(line.id, request, claim);
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
   * Waits until the store may be asked again, or until `waitUntil` for a last time. Resolves with `false` if the time
   * is up and the store was asked less than 50 ms ago. Otherwise a thousand copies would each ask the store once more.
   */
  async #mayAskAgain(line: Line, waitUntil: number): Promise<boolean> {
    await line.pauseUntilAsking(waitUntil);
    const now = performance.now();
    return now < waitUntil || now - line.askedAt >= firstPauseMs;
  }

  #toRequest({ token, fingerprint, event, externalId }: ClaimTerms, leftMs: number): ClaimRequest {
    const { leaseMs, retentionMs, storeTimeoutMs } = this.#times;
    // A delivery with no time left to wait still needs a connection for its one request.
    const queueMs = Math.max(storeTimeoutMs, leftMs);
    return { token, fingerprint, leaseMs, retentionMs, timeoutMs: storeTimeoutMs, queueMs, event, externalId };
  }

  /** Returns whether the reply to a request of `askedAt` is read so late that the lease may have lapsed. */
  #isLate(askedAt: number): boolean {
    return performance.now() - askedAt > this.#times.leaseMs / renewalsPerLease;
  }

  /**
   * Renews a claim whose reply was read late, and claims again if the renewal is refused. A process that was stopped or
   * starved may read `claimed` after its lease has lapsed and another delivery has settled.
   */
  async #makeSure(id: string, request: ClaimRequest, late: Claim<Tx>): Promise<Claim<Tx>> {
    let claim = late;
    let isLate = true;
    while (isLate && claim.state === 'claimed') {
      const { lease } = claim;
      let askedAt = performance.now();
      try {
        if (!(await this.#store.renew(lease))) {
          askedAt = performance.now();
          claim = requireClaim(await this.#store.claim(id, request));
        }
      } catch (error) {
        this.#store.release(lease).catch(() => undefined); // If this fails, the lease expires.
        throw error;
      }
      isLate = this.#isLate(askedAt);
    }
    return claim;
  }

  /** Returns `in_progress` for the delivery that asked, and lets the next one ask. */
  #leave(line: Line): Shared {
    this.next(line);
    return { state: 'in_progress' };
  }
}
