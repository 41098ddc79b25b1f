import { graceMs, pause } from '../lib/deadline.js';
import { toReason } from '../lib/errors.js';
import { AfterCommit } from './after-commit.js';
import { toAnnouncementKey, toReversalKey, type CallbackShape, type OtherEvent } from './callback.js';
import { callStore } from './claim/call-store.js';
import { HeldClaim } from './claim/held-claim.js';
import type { LineEnd } from './claim/line.js';
import type { Delivery } from './delivery.js';
import { handleClaimed, runHandler } from './handle.js';
import { requireRecord } from './inspect.js';
import type { Ending } from './outcomes.js';
import type { ReceiverParts } from './parts.js';

/**
 * Processes a failure or a reversal of a service that takes successes back. Each gives the money of a transfer back, so
 * only one of them is handled, once. Beside the record of the transfer, a second record has what was given back. The
 * reversal of a success runs under the claim of the second record, and every other delivery under the claim of the
 * first. The second record is read first, because it outlives a success that expires, is forgotten, or is recorded late
 * over a reversal. Never rejects.
 */
export async function giveBack<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  parts: ReceiverParts<C, Tx>,
): Promise<Ending> {
  const [reversalKey, announcementKey] = await Promise.all([
    toReversalKey(delivery.id),
    toAnnouncementKey(delivery.id),
  ]);
  return new GivingBack(delivery, parts, reversalKey, announcementKey).run();
}

type Claimed<Tx> = HeldClaim<Tx> | LineEnd;

/**
 * Between the look at the second record and the handler, other deliveries that give back are excluded in this way:
 *
 * | store             | under the claim of the transfer             | the reversal of a success                  |
 * | undoes no writes  | claims the second record, too               | claims the second record                   |
 * | transactional     | saw no announcement within `freshMs`        | announces itself, and lets `freshMs` pass  |
 *
 * With a transactional store two claims at the same time, or a look under a claim, would need two connections of one
 * pool. After the pause each delivery that has not seen the announcement has claimed the transfer, or looks again.
 */
class GivingBack<C extends CallbackShape, Tx> {
  readonly #delivery: Delivery<C | OtherEvent>;
  readonly #parts: ReceiverParts<C, Tx>;
  readonly #reversalKey: string;
  readonly #announcementKey: string;
  /** The deadline of all waits together. */
  readonly #waitEndsAt: number;

  constructor(
    delivery: Delivery<C | OtherEvent>,
    parts: ReceiverParts<C, Tx>,
    reversalKey: string,
    announcementKey: string,
  ) {
    this.#delivery = delivery;
    this.#parts = parts;
    this.#reversalKey = reversalKey;
    this.#announcementKey = announcementKey;
    this.#waitEndsAt = performance.now() + parts.options.inFlightWaitMs;
  }

  async run(): Promise<Ending> {
    const { rules } = this.#parts;
    for (;;) {
      const found = await this.#findReversal();
      if (found !== undefined) return this.#end(found);
      const lookedAt = performance.now();
      const announced = rules.undoesWrites ? await this.#read(this.#announcementKey) : undefined;
      if (announced?.state === 'unavailable') return this.#end(announced);
      const isAnnounced = announced?.state === 'settled';
      if (isAnnounced && this.#delivery.status === 'REVERSED') return this.#reverseSuccess();
      const claimed = await this.#claim(this.#delivery.key);
      if (!(claimed instanceof HeldClaim))
        return this.#isReversed(claimed) ? this.#reverseSuccess() : this.#end(claimed);
      if (!rules.undoesWrites) return this.#runUnderBoth(claimed);
      if (!isAnnounced && performance.now() - lookedAt < this.#freshMs) return this.#runAndRecord(claimed);
      await claimed.release();
      if (this.#leftMs <= 0) return { outcome: 'in_progress' };
      if (isAnnounced) await pause(Math.min(this.#leftMs, this.#freshMs));
    }
  }

  /** How long a look at the announcement counts, in milliseconds. */
  get #freshMs(): number {
    return this.#parts.options.storeTimeoutMs;
  }

  get #leftMs(): number {
    return Math.max(0, Math.ceil(this.#waitEndsAt - performance.now()));
  }

  #claim(key: string): Promise<Claimed<Tx>> {
    return this.#parts.lines.claim(this.#delivery, key, this.#leftMs);
  }

  #end(claimed: Claimed<Tx>): Ending | Promise<Ending> {
    return handleClaimed(this.#delivery, claimed, this.#parts);
  }

  /** Whether this takes back the success of a transfer. */
  #isReversed(claimed: LineEnd): boolean {
    return claimed.state === 'settled' && this.#delivery.reverses(claimed.fingerprint);
  }

  /** Resolves with what was given back, with how the wait for another delivery ends, or with `undefined`. */
  async #findReversal(): Promise<LineEnd | undefined> {
    const found = await this.#read(this.#reversalKey);
    if (found?.state !== 'in_progress') return found;
    const claimed = await this.#claim(this.#reversalKey);
    if (!(claimed instanceof HeldClaim)) return claimed;
    await claimed.release();
    return undefined;
  }

  /** Resolves with `undefined` if there is no record. */
  async #read(key: string): Promise<LineEnd | undefined> {
    const { store, storeTimeoutMs } = this.#parts.options;
    try {
      const record = requireRecord(await callStore(storeTimeoutMs, async () => store.read?.(key)));
      if (record.state === 'claimed') return { state: 'in_progress' };
      return record.state === 'settled' ? record : undefined;
    } catch (error) {
      return { state: 'unavailable', error: toReason(error) };
    }
  }

  async #reverseSuccess(): Promise<Ending> {
    const refused = this.#parts.rules.undoesWrites ? await this.#announce() : undefined;
    return refused ?? this.#end(await this.#claim(this.#reversalKey));
  }

  /**
   * Records that the success is about to be reversed, and waits until no delivery runs, or will run, under the claim of
   * the transfer that has not seen this. Resolves with how the delivery ends if the transfer is not to be reversed.
   */
  async #announce(): Promise<Ending | undefined> {
    const announcing = await this.#claim(this.#announcementKey);
    if (announcing instanceof HeldClaim) {
      const ending = await settle(announcing);
      if (ending.outcome !== 'processed') return ending;
    } else {
      const ending = await this.#end(announcing);
      if (ending.outcome !== 'duplicate') return ending;
    }
    await pause(this.#freshMs + graceMs);
    const claimed = await this.#claim(this.#delivery.key);
    if (!(claimed instanceof HeldClaim)) return this.#isReversed(claimed) ? undefined : this.#end(claimed);
    // The record of the success has ended.
    await claimed.release();
    return undefined;
  }

  /** Runs the handler of a transactional store, and records afterwards what was given back if that is a reversal. */
  #runAndRecord(claim: HeldClaim<Tx>): Promise<Ending> {
    return runHandler(this.#delivery, claim, this.#parts, async (hasSucceeded) => {
      if (!hasSucceeded || this.#delivery.status !== 'REVERSED') return;
      // Without this record, the record of the transfer shows the same as long as it lives.
      const reversal = await this.#claim(this.#reversalKey);
      if (reversal instanceof HeldClaim) await settle(reversal);
    });
  }

  /** Claims the second record, too: a late success may replace the claim of the transfer while the handler runs. */
  async #runUnderBoth(claim: HeldClaim<Tx>): Promise<Ending> {
    const reversal = await this.#claim(this.#reversalKey);
    if (reversal instanceof HeldClaim) {
      return runHandler(this.#delivery, claim, this.#parts, async (hasSucceeded) => {
        await (hasSucceeded ? settle(reversal) : reversal.release());
      });
    }
    await claim.release();
    return this.#end(reversal);
  }
}

/** Settles a claim without a handler, or releases it. */
async function settle<Tx>(claim: HeldClaim<Tx>): Promise<Ending> {
  const ending = await claim.settle(new AfterCommit());
  if (ending.outcome !== 'processed') await claim.release();
  return ending;
}
