import { PassingEntries } from '../../lib/passing-entries.js';
import type { Delivery } from '../delivery.js';
import { maxHandlerTimeouts } from '../options.js';
import type { Claim, ClaimReply, ClaimRequest } from '../store.js';
import { claimCallback } from './call-store.js';
import { HeldClaim, type Shared } from './held-claim.js';
import { Line, type LineEnd } from './line.js';

/**
 * Claims callbacks. A delivery waits up to `inFlightWaitMs` while another one holds the claim. If that one succeeds,
 * the result is `settled`; if it fails, the waiting delivery claims. Deliveries of one callback in one process share a
 * line: a thousand copies cost the store as much as one, and all get the handler's result as soon as it succeeds.
 */
export class Lines<Tx> {
  readonly #parts: Shared<Tx>;
  readonly #lines = new PassingEntries<Line>();
  #isClosed = false;

  constructor(parts: Shared<Tx>) {
    this.#parts = parts;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Claims the callback of a delivery, and notes how long it waited for another one that holds the claim. A reversal
   * may also claim a key of its own. Never rejects.
   */
  async claim(
    delivery: Delivery,
    key = delivery.key,
    waitMs = this.#parts.options.inFlightWaitMs,
  ): Promise<HeldClaim<Tx> | LineEnd> {
    const line = this.#lines.get(key);
    const result = await (line === undefined
      ? this.#ask(delivery, this.#begin(key, delivery.id), performance.now() + waitMs)
      : this.#waitAndAsk(delivery, line, waitMs));
    delivery.endWait();
    if (!(result instanceof HeldClaim) || !this.#isClosed) return result;
    await result.release();
    return { state: 'closing' };
  }

  /** Ends every wait with `closing`, and every later claim too. */
  close(): void {
    this.#isClosed = true;
    for (const line of this.#lines.values()) line.tell({ state: 'closing' });
  }

  async #waitAndAsk(delivery: Delivery, line: Line, waitMs: number): Promise<HeldClaim<Tx> | LineEnd> {
    const waitEndsAt = performance.now() + waitMs;
    delivery.beginWait();
    const result = await line.wait(waitMs);
    if (result !== undefined) return result;
    return (await line.pause(waitEndsAt)) === 'ask' ? this.#ask(delivery, line, waitEndsAt) : leave(line);
  }

  #begin(key: string, id: string): Line {
    const line = new Line(key, id, () => {
      this.#lines.delete(key);
    });
    this.#lines.set(key, line);
    return line;
  }

  /** Asks the store, and again while another process holds the claim. */
  async #ask(delivery: Delivery, line: Line, waitEndsAt: number): Promise<HeldClaim<Tx> | LineEnd> {
    while (!this.#isClosed) {
      const request = this.#toRequest(delivery, waitEndsAt - performance.now());
      const reply = await line.ask(() => this.#claim(line, request));
      if (reply.state === 'claimed') return new HeldClaim(reply.claim, request, line, this.#parts);
      if (reply.state !== 'in_progress') return reply;
      delivery.beginWait();
      // A slow store has used up the time itself: it is not asked once more.
      if (performance.now() >= waitEndsAt || (await line.pause(waitEndsAt)) === 'leave') return leave(line);
    }
    return line.end({ state: 'closing' });
  }

  #toRequest({ name, fingerprint, event, type, externalId }: Delivery, leftMs: number): ClaimRequest {
    const { leaseMs, retentionMs, storeTimeoutMs, handlerTimeoutMs } = this.#parts.options;
    return {
      token: name,
      fingerprint,
      leaseMs,
      retentionMs,
      timeoutMs: storeTimeoutMs,
      // A delivery with no time left to wait still needs a connection for its one request.
      queueMs: Math.max(storeTimeoutMs, Math.ceil(leftMs)),
      // After its last renewal the claim is held until the lease ends.
      maxHeldMs: maxHandlerTimeouts * handlerTimeoutMs + leaseMs,
      event: type ?? event,
      externalId: externalId ?? '',
    };
  }

  async #claim(line: Line, request: ClaimRequest): Promise<ClaimReply<Tx>> {
    const askedAt = performance.now();
    const { options, rules } = this.#parts;
    const reply = await claimCallback(options.store, line, request, options.storeTimeoutMs, rules);
    if (reply.state !== 'claimed' || !this.#isLate(askedAt)) return reply;
    // A process that was stopped or starved may read `claimed` after its lease has lapsed and another delivery has
    // settled. The token stays: no handler runs yet under the claim that a late release could free.
    try {
      return (await this.#renewInTime(reply.claim)) ? reply : await this.#claim(line, request);
    } catch (error) {
      reply.claim.release().catch(() => undefined); // If this fails, the lease expires.
      throw error;
    }
  }

  /** Renews a claim, and again while the reply is read late. Resolves with whether the store still had the claim. */
  async #renewInTime(claim: Claim<Tx>): Promise<boolean> {
    for (;;) {
      const renewedAt = performance.now();
      if (!(await claim.renew())) return false;
      if (!this.#isLate(renewedAt)) return true;
    }
  }

  #isLate(askedAt: number): boolean {
    return performance.now() - askedAt > this.#parts.rules.readWithinMs;
  }
}

/** Returns `in_progress` for the delivery that has the turn, and lets the next one ask. */
function leave(line: Line): LineEnd {
  line.next();
  return { state: 'in_progress' };
}
