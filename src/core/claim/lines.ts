import { PassingEntries } from '../../lib/passing-entries.js';
import type { Delivery } from '../delivery.js';
import { maxHandlerTimeouts } from '../options.js';
import type { ClaimReply, ClaimRequest } from '../store.js';
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
   * Claims the callback of a delivery, and notes how long it waited for another one that holds the claim. Never
   * rejects.
   */
  async claim(delivery: Delivery): Promise<HeldClaim<Tx> | LineEnd> {
    const result = await this.#waitOrAsk(delivery);
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

  async #waitOrAsk(delivery: Delivery): Promise<HeldClaim<Tx> | LineEnd> {
    if (this.#isClosed) return { state: 'closing' };
    const waitEndsAt = performance.now() + this.#parts.options.inFlightWaitMs;
    const line = this.#lines.get(delivery.key);
    if (line === undefined) return this.#ask(delivery, this.#begin(delivery.key), waitEndsAt);
    delivery.beginWait();
    const result = await line.wait();
    if (result !== undefined) return result;
    return (await line.pause(waitEndsAt)) === 'ask' ? this.#ask(delivery, line, waitEndsAt) : leave(line);
  }

  #begin(key: string): Line {
    const line = new Line(key, this.#parts.options.inFlightWaitMs, () => {
      this.#lines.delete(key);
    });
    this.#lines.set(key, line);
    return line;
  }

  /** Asks the store, and again while another process holds the claim. */
  async #ask(delivery: Delivery, line: Line, waitEndsAt: number): Promise<HeldClaim<Tx> | LineEnd> {
    while (!this.#isClosed) {
      const request = this.#toRequest(delivery, waitEndsAt - performance.now());
      const reply = await line.ask(() => this.#claim(line.key, request));
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
      maxHeldMs: maxHandlerTimeouts * handlerTimeoutMs,
      event: type ?? event,
      externalId: externalId ?? '',
    };
  }

  async #claim(key: string, request: ClaimRequest): Promise<ClaimReply<Tx>> {
    const askedAt = performance.now();
    const { options, rules } = this.#parts;
    const reply = await claimCallback(options.store, key, request, options.storeTimeoutMs, rules);
    return this.#renewIfLate(askedAt, reply, key, request);
  }

  /**
   * Renews a claim whose grant was read late, and claims again if the renewal is refused. A process that was stopped or
   * starved may read `claimed` after its lease has lapsed and another delivery has settled. The token stays: no handler
   * runs yet under the claim that a late release could free.
   */
  async #renewIfLate(
    askedAt: number,
    reply: ClaimReply<Tx>,
    key: string,
    request: ClaimRequest,
  ): Promise<ClaimReply<Tx>> {
    const isLate = performance.now() - askedAt > this.#parts.rules.readWithinMs;
    if (!isLate || reply.state !== 'claimed') return reply;
    const renewedAt = performance.now();
    try {
      if (!(await reply.claim.renew())) return await this.#claim(key, request);
      return await this.#renewIfLate(renewedAt, reply, key, request);
    } catch (error) {
      reply.claim.release().catch(() => undefined); // If this fails, the lease expires.
      throw error;
    }
  }
}

/** Returns `in_progress` for the delivery that has the turn, and lets the next one ask. */
function leave(line: Line): LineEnd {
  line.next();
  return { state: 'in_progress' };
}
