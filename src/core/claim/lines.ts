import { toReason } from '../../lib/errors.js';
import { PassingEntries } from '../../lib/passing-entries.js';
import type { Delivery } from '../delivery.js';
import { isRefund, isReversalOf } from '../facts.js';
import type { Claim, ClaimReply } from '../store.js';
import { maxHandlerTimeouts, renewalsPerLease } from '../times.js';
import { callClaim, releaseUnheld, claimCallback, type TimedRequest, type ClaimParts } from './call-store.js';
import { HeldClaim } from './held-claim.js';
import { Line, type LineEnd } from './line.js';

/**
 * Claims callbacks. A delivery waits up to `inFlightWaitMs` while another one holds the claim. If that one succeeds,
 * the result is `handled`; if it fails, the waiting delivery claims. Deliveries of one callback in one process share a
 * line: a thousand copies cost the store as much as one, and all get the handler's result as soon as it succeeds.
 */
export class Lines {
  readonly #parts: ClaimParts;
  readonly #lines = new PassingEntries<Line>();
  /** The lines of failures and reversals, of which one refunds a transfer. They learn of other records. */
  readonly #refunds = new PassingEntries<Line>();
  #isClosed = false;

  constructor(parts: ClaimParts) {
    this.#parts = parts;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Claims the callback of a delivery, and tells the delivery when it begins to wait for another one that holds the
   * claim. A refund claims both records, or only the record of the refund if it reverses a success. Never rejects.
   */
  claim(
    delivery: Delivery,
    waitEndsAt = performance.now() + this.#parts.options.inFlightWaitMs,
  ): Promise<HeldClaim | LineEnd> {
    const lines = this.#claimsBoth(delivery) ? this.#refunds : this.#lines;
    const line = lines.get(delivery.key);
    return line === undefined
      ? this.#ask(delivery, new Line(delivery.key, delivery.id, lines), waitEndsAt)
      : this.#waitAndAsk(delivery, line, waitEndsAt);
  }

  /** Only a service that reverses transfers pays for the second record. */
  #claimsBoth(delivery: Delivery): boolean {
    return this.#parts.options.onReversed !== undefined && isRefund(delivery);
  }

  /** Ends every wait with `closing`, and every later claim too. */
  close(): void {
    this.#isClosed = true;
    for (const line of [...this.#lines.values(), ...this.#refunds.values()]) line.tell({ state: 'closing' });
  }

  async #waitAndAsk(delivery: Delivery, line: Line, waitEndsAt: number): Promise<HeldClaim | LineEnd> {
    delivery.beginWait();
    const result = await line.wait(waitEndsAt - performance.now());
    if (result === undefined) {
      return (await line.pause(waitEndsAt)) === 'ask' ? this.#ask(delivery, line, waitEndsAt) : leave(line);
    }
    // A failure has learned of the success that this reverses.
    const isReversal = result.state === 'handled' && isReversalOf(result.fingerprint, delivery.fingerprint);
    return isReversal ? this.claim(delivery, waitEndsAt) : result;
  }

  /** Asks the store, and again while another process holds the claim. */
  async #ask(delivery: Delivery, line: Line, waitEndsAt: number): Promise<HeldClaim | LineEnd> {
    while (!this.#isClosed) {
      const request = this.#toRequest(delivery, waitEndsAt - performance.now());
      const reply = await this.#claimInTime(line, request);
      if (reply.state === 'unavailable' || reply.state === 'handled') return line.end(reply);
      if (reply.state === 'claimed') {
        line.endAsking();
        delivery.endWait();
        const claim = new HeldClaim(reply.claim, request, line, this.#parts);
        if (!this.isClosed) return claim;
        await claim.release();
        return { state: 'closing' };
      }
      line.postpone();
      delivery.beginWait();
      // A slow store has used up the time itself: it is not asked once more.
      if (performance.now() >= waitEndsAt || (await line.pause(waitEndsAt)) === 'leave') return leave(line);
    }
    return line.end({ state: 'closing' });
  }

  #toRequest(delivery: Delivery, leftMs: number): TimedRequest {
    const { name, fingerprint, event, type, externalId } = delivery;
    const { leaseMs, retentionMs, storeTimeoutMs, handlerTimeoutMs } = this.#parts.options;
    return {
      token: name,
      ...(this.#claimsBoth(delivery) && { record: 'both' }),
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

  /**
   * Claims until a grant is read in time: it renews a claim whose grant was read late, and claims again if the store no
   * longer has it. A process that was stopped or starved may read `claimed` after its lease has lapsed and another
   * delivery has settled. A reply that is read late proves nothing either. All claims have the same token: no handler
   * runs yet under one that a late release could free. Never rejects.
   */
  async #claimInTime(
    line: Line,
    request: TimedRequest,
  ): Promise<ClaimReply<unknown> | Extract<LineEnd, { state: 'unavailable' }>> {
    const { store, leaseMs } = this.#parts.options;
    // A transactional store settles no claim that has lapsed, and may have no second connection for a renewal.
    const readWithinMs = store.transactional === true ? leaseMs : leaseMs / renewalsPerLease;
    let granted: Claim<unknown> | undefined;
    let isHeld = false;
    line.beginAsking();
    try {
      for (;;) {
        const askedAt = performance.now();
        if (granted !== undefined && isHeld) {
          isHeld = await callClaim(granted, 'renew', line.id, request);
        } else {
          const reply: ClaimReply<unknown> = await claimCallback(store, line, request);
          if (reply.state !== 'claimed') return reply;
          granted = reply.claim;
          isHeld = true;
        }
        const isInTime = performance.now() - askedAt <= readWithinMs;
        if (isHeld && isInTime) return { state: 'claimed', claim: granted };
      }
    } catch (error) {
      // The store may also have granted a claim whose reply was lost, with the same token: this frees it.
      if (granted !== undefined) releaseUnheld(granted, line.id, request);
      return { state: 'unavailable', error: toReason(error) };
    }
  }
}

/** Returns `in_progress` for the delivery that has the turn, and lets the next one ask. */
function leave(line: Line): LineEnd {
  line.next();
  return { state: 'in_progress' };
}
