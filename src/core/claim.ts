import type { Delivery } from './delivery.js';
import { deadlinesHeld, renewalsPerLease, type ResolvedTimes } from './options.js';
import type { Claim, ClaimRequest, Lease } from './store.js';
import { requireClaim, type TimedStore } from './timed-store.js';
import { WaitingLine, type SharedResult } from './waiting-line.js';

/** A granted claim: the lease, the request that got it, and the line of the deliveries that wait for it. */
export interface Granted<Tx> {
  readonly state: 'claimed';
  readonly lease: Lease<Tx>;
  readonly request: ClaimRequest;
  readonly line: WaitingLine;
}

/** The result of a delivery's claim, and how long the delivery waited for another one that held the claim. */
type ClaimResult<Tx> = (Granted<Tx> | SharedResult) & { readonly waitedMs: number };

/** The facts of a delivery that a claim needs. */
type Claimant = Pick<Delivery, 'name' | 'id' | 'fingerprint' | 'event' | 'externalId'>;

/** How long a delivery waits for another one that holds the claim. */
interface Wait {
  readonly until: number;
  since: number | undefined;
}

/**
 * Claims callbacks. A delivery waits up to `inFlightWaitMs` while another one holds the claim. If that one succeeds,
 * the result is `settled`; if it fails, the waiting delivery claims. Deliveries of one callback in one process share a
 * line: a thousand copies cost the store as much as one, and all get the handler's result as soon as it succeeds.
 */
export class Claims<Tx> {
  readonly #store: TimedStore<Tx>;
  readonly #times: ResolvedTimes;
  readonly #lines = new Map<string, WaitingLine>();
  #isClosed = false;

  constructor(store: TimedStore<Tx>, times: ResolvedTimes) {
    this.#store = store;
    this.#times = times;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Claims the callback of a delivery, and waits while another delivery holds the claim. Never rejects. */
  claim(delivery: Claimant): Promise<ClaimResult<Tx>> {
    if (this.#isClosed) return Promise.resolve({ state: 'closing', waitedMs: 0 });
    const now = performance.now();
    const line = this.#lines.get(delivery.id);
    const wait: Wait = { until: now + this.#times.inFlightWaitMs, since: line === undefined ? undefined : now };
    return line === undefined
      ? this.#ask(delivery, this.#beginLine(delivery.id), wait)
      : this.#waitAndAsk(delivery, line, wait);
  }

  /** Ends every wait with `closing`, and every later claim too. */
  close(): void {
    this.#isClosed = true;
    for (const line of this.#lines.values()) line.endWaits({ state: 'closing' });
  }

  #beginLine(id: string): WaitingLine {
    const line = new WaitingLine(id, this.#times.inFlightWaitMs, () => {
      this.#lines.delete(id);
    });
    this.#lines.set(id, line);
    return line;
  }

  async #waitAndAsk(delivery: Claimant, line: WaitingLine, wait: Wait): Promise<ClaimResult<Tx>> {
    const result = await line.wait();
    if (result !== undefined) return toResult(result, wait);
    return (await line.pause(wait.until)) ? this.#ask(delivery, line, wait) : leave(line, wait);
  }

  /** Asks the store, and again while another process holds the claim. */
  async #ask(delivery: Claimant, line: WaitingLine, wait: Wait): Promise<ClaimResult<Tx>> {
    for (;;) {
      if (this.#isClosed) return toResult(line.share({ state: 'closing' }), wait);
      const now = performance.now();
      const request = this.#toRequest(delivery, wait.until - now);
      let claim: Claim<Tx>;
      line.beginAsking(now);
      try {
        claim = requireClaim(await this.#store.claim(line.id, request));
        if (this.#isLate(now)) claim = await this.#makeSure(line.id, request, claim);
      } catch (error) {
        return toResult(line.share({ state: 'unavailable', error }), wait);
      }
      if (claim.state === 'settled') return toResult(line.share(claim), wait);
      if (claim.state === 'claimed') {
        line.grant(delivery.name);
        return { state: 'claimed', lease: claim.lease, request, line, waitedMs: toWaitedMs(wait) };
      }
      wait.since ??= performance.now();
      line.postpone();
      if (performance.now() >= wait.until || !(await line.pause(wait.until))) return leave(line, wait);
    }
  }

  #toRequest({ name, fingerprint, event, externalId }: Claimant, leftMs: number): ClaimRequest {
    const { leaseMs, retentionMs, storeTimeoutMs, handlerTimeoutMs } = this.#times;
    return {
      token: name,
      fingerprint,
      leaseMs,
      retentionMs,
      timeoutMs: storeTimeoutMs,
      // A delivery with no time left to wait still needs a connection for its one request.
      queueMs: Math.max(storeTimeoutMs, leftMs),
      maxHeldMs: deadlinesHeld * handlerTimeoutMs,
      event,
      externalId,
    };
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
}

/** Returns `in_progress` for the delivery that asked, and lets the next one ask. */
function leave(line: WaitingLine, wait: Wait): ClaimResult<never> {
  line.callNext();
  return toResult({ state: 'in_progress' }, wait);
}

function toResult(result: SharedResult, wait: Wait): ClaimResult<never> {
  return { ...result, waitedMs: toWaitedMs(wait) };
}

function toWaitedMs({ since }: Wait): number {
  return since === undefined ? 0 : performance.now() - since;
}
