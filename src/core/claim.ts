import { claimCallback } from './call-store.js';
import type { Delivery } from './delivery.js';
import { HeldClaim, type ClaimParts } from './held-claim.js';
import { maxHandlerTimeouts, renewalsPerLease } from './options.js';
import type { ClaimReply, ClaimRequest } from './store.js';
import { WaitingLine, type SharedResult } from './waiting-line.js';

/** The result of a delivery's claim. */
type ClaimResult<Tx> = SharedResult | { readonly state: 'claimed'; readonly claim: HeldClaim<Tx> };

/**
 * Claims callbacks. A delivery waits up to `inFlightWaitMs` while another one holds the claim. If that one succeeds,
 * the result is `settled`; if it fails, the waiting delivery claims. Deliveries of one callback in one process share a
 * line: a thousand copies cost the store as much as one, and all get the handler's result as soon as it succeeds.
 */
export class ClaimQueue<Tx> {
  readonly #parts: ClaimParts<Tx>;
  readonly #lines = new Map<string, WaitingLine>();
  #isClosed = false;

  constructor(parts: ClaimParts<Tx>) {
    this.#parts = parts;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Claims the callback of a delivery, and waits while another delivery holds the claim. Notes when the delivery begins to
   * wait. Never rejects.
   */
  claim(delivery: Delivery): Promise<ClaimResult<Tx>> {
    if (this.#isClosed) return Promise.resolve({ state: 'closing' });
    const now = performance.now();
    const waitUntil = now + this.#parts.times.inFlightWaitMs;
    const line = this.#lines.get(delivery.key);
    if (line === undefined) return this.#ask(delivery, this.#beginLine(delivery.key), waitUntil);
    delivery.waitsSince = now;
    return this.#waitAndAsk(delivery, line, waitUntil);
  }

  /** Ends every wait with `closing`, and every later claim too. */
  close(): void {
    this.#isClosed = true;
    for (const line of this.#lines.values()) line.endWaits({ state: 'closing' });
  }

  #beginLine(key: string): WaitingLine {
    const line = new WaitingLine(key, this.#parts.times.inFlightWaitMs, () => {
      this.#lines.delete(key);
    });
    this.#lines.set(key, line);
    return line;
  }

  async #waitAndAsk(delivery: Delivery, line: WaitingLine, waitUntil: number): Promise<ClaimResult<Tx>> {
    const result = await line.wait();
    if (result !== undefined) return result;
    return (await line.pause(waitUntil)) ? this.#ask(delivery, line, waitUntil) : leave(line);
  }

  /** Asks the store, and again while another process holds the claim. */
  async #ask(delivery: Delivery, line: WaitingLine, waitUntil: number): Promise<ClaimResult<Tx>> {
    for (;;) {
      if (this.#isClosed) return line.share({ state: 'closing' });
      const now = performance.now();
      const request = this.#toRequest(delivery, waitUntil - now);
      let reply: ClaimReply<Tx>;
      line.beginAsking(now);
      try {
        reply = await this.#claim(line.key, request);
        if (this.#isReadLate(now)) reply = await this.#renewOrClaim(line.key, request, reply);
      } catch (error) {
        return line.share({ state: 'unavailable', error });
      }
      if (reply.state === 'settled') return line.share(reply);
      if (reply.state === 'claimed') {
        line.grant(delivery.name);
        return { state: 'claimed', claim: new HeldClaim(reply.claim, request, line, this.#parts) };
      }
      delivery.waitsSince ??= performance.now();
      line.postpone();
      if (performance.now() >= waitUntil || !(await line.pause(waitUntil))) return leave(line);
    }
  }

  #claim(key: string, request: ClaimRequest): Promise<ClaimReply<Tx>> {
    const { store, times } = this.#parts;
    return claimCallback(store, key, request, times.storeTimeoutMs);
  }

  #toRequest({ name, fingerprint, event, type, externalId }: Delivery, leftMs: number): ClaimRequest {
    const { leaseMs, retentionMs, storeTimeoutMs, handlerTimeoutMs } = this.#parts.times;
    return {
      token: name,
      fingerprint,
      leaseMs,
      retentionMs,
      timeoutMs: storeTimeoutMs,
      // A delivery with no time left to wait still needs a connection for its one request.
      queueMs: Math.max(storeTimeoutMs, Math.ceil(leftMs)),
      maxHeldMs: maxHandlerTimeouts * handlerTimeoutMs,
      event: type ?? event,
      externalId: externalId ?? '',
    };
  }

  /** Returns whether the reply to a request of `askedAt` is read so late that the lease may have lapsed. */
  #isReadLate(askedAt: number): boolean {
    const { store, times } = this.#parts;
    // A transactional store settles no claim that has lapsed, and its pool may have no second connection for a renewal.
    const patienceMs = store.transactional === true ? times.leaseMs : times.leaseMs / renewalsPerLease;
    return performance.now() - askedAt > patienceMs;
  }

  /**
   * Renews a claim whose reply was read late, and claims again if the renewal is refused. A process that was stopped or
   * starved may read `claimed` after its lease has lapsed and another delivery has settled.
   */
  async #renewOrClaim(key: string, request: ClaimRequest, late: ClaimReply<Tx>): Promise<ClaimReply<Tx>> {
    let reply = late;
    let isLate = true;
    while (isLate && reply.state === 'claimed') {
      const { claim } = reply;
      let askedAt = performance.now();
      try {
        if (!(await claim.renew())) {
          askedAt = performance.now();
          reply = await this.#claim(key, request);
        }
      } catch (error) {
        claim.release().catch(() => undefined); // If this fails, the lease expires.
        throw error;
      }
      isLate = this.#isReadLate(askedAt);
    }
    return reply;
  }
}

/** Returns `in_progress` for the delivery that asked, and lets the next one ask. */
function leave(line: WaitingLine): SharedResult {
  line.callNext();
  return { state: 'in_progress' };
}
