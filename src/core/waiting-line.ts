import { setDeadline } from '../lib/deadline.js';

/** A result of a claim that all deliveries of a line can share. */
export type SharedResult =
  | { state: 'settled'; fingerprint: string }
  | { state: 'in_progress' }
  | { state: 'unavailable'; error: unknown }
  | { state: 'closing' };

interface Waiter {
  /** Ends the wait. With `undefined` the delivery asks the store itself. */
  readonly resolve: (result: SharedResult | undefined) => void;
  readonly cancelDeadline: () => void;
  /** Whether its time is up. If the store is being asked, the delivery still waits for that reply. */
  expired: boolean;
}

const firstPauseMs = 50;
const longestPauseMs = 1_000;

/**
 * The deliveries of one callback in this process. One of them asks the store, and then holds the claim; the others wait
 * for its result, or for their turn.
 */
export class WaitingLine {
  /** The key of the callback in the store. */
  readonly key: string;
  readonly #waitMs: number;
  /** Called when no delivery is left. */
  readonly #onEmpty: () => void;
  readonly #waiters: Waiter[] = [];
  /** The name of the delivery that holds the claim. */
  #holder: string | undefined;
  #known: SharedResult | undefined;
  /** Whether the store has been asked and has not replied. */
  #isAsking = false;
  #askedAt = 0;
  #askAgainAt = 0;
  #pauseMs = firstPauseMs;
  #wake: (() => void) | undefined;

  constructor(key: string, waitMs: number, onEmpty: () => void) {
    this.key = key;
    this.#waitMs = waitMs;
    this.#onEmpty = onEmpty;
  }

  /** Waits. Resolves with the shared result, or with `undefined` when this delivery must ask the store. */
  wait(): Promise<SharedResult | undefined> {
    if (this.#known !== undefined) return Promise.resolve(this.#known);
    return new Promise((resolve) => {
      const cancelDeadline = setDeadline(this.#waitMs, () => {
        waiter.expired = true;
        if (!this.#isAsking) this.#dismissExpired();
      });
      const waiter = { resolve, cancelDeadline, expired: false };
      this.#waiters.push(waiter);
    });
  }

  /** Marks that the store is being asked. Until it replies, deliveries whose time is up keep waiting. */
  beginAsking(now: number): void {
    this.#isAsking = true;
    this.#askedAt = now;
  }

  /** Marks that the store has granted the claim to a delivery. It calls `succeed` or `passOn`. */
  grant(delivery: string): void {
    this.#holder = delivery;
    this.#endAsking();
  }

  /** Marks that another process holds the claim. The next request is delayed, longer each time. */
  postpone(): void {
    this.#askAgainAt = performance.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
    this.#endAsking();
  }

  /**
   * Waits until the store may be asked again, or until `waitUntil` for a last time. Resolves with `false` if the time
   * is up and the store was asked less than 50 ms ago. Otherwise a thousand copies would each ask the store once more.
   */
  async pause(waitUntil: number): Promise<boolean> {
    const pauseMs = Math.min(this.#askAgainAt, waitUntil) - performance.now();
    if (pauseMs > 0) await this.#sleep(pauseMs);
    const now = performance.now();
    return now < waitUntil || now - this.#askedAt >= firstPauseMs;
  }

  /** Ends the line: all deliveries that wait get `result`. Returns it. */
  share<S extends SharedResult>(result: S): S {
    this.#onEmpty();
    this.endWaits(result);
    return result;
  }

  /** Lets the next delivery ask the store, or ends the line if none waits. */
  callNext(): void {
    const waiter = this.#waiters.shift();
    if (waiter === undefined) {
      this.#onEmpty();
    } else {
      waiter.cancelDeadline();
      waiter.resolve(undefined);
    }
  }

  /**
   * Marks the callback as settled for the deliveries that wait, and for those that arrive before `passOn`. They do not
   * ask the store, which may not have recorded the success yet. Does nothing if the delivery no longer holds the claim.
   */
  succeed(delivery: string, fingerprint: string): void {
    if (this.#holder !== delivery) return;
    this.#known = { state: 'settled', fingerprint };
    this.endWaits(this.#known);
  }

  /**
   * Lets the next delivery ask the store. Call it when the claim is free or no longer this delivery's. Does nothing
   * when it is called again.
   */
  passOn(delivery: string): void {
    if (this.#holder !== delivery) return;
    this.#holder = undefined;
    this.callNext();
  }

  /** Ends every wait with `result`, and the pause before the next request. */
  endWaits(result: SharedResult): void {
    for (const { cancelDeadline, resolve } of this.#waiters.splice(0)) {
      cancelDeadline();
      resolve(result);
    }
    this.#wake?.();
  }

  #endAsking(): void {
    this.#isAsking = false;
    this.#dismissExpired();
  }

  /** Ends the waits whose time is up. All waits are equally long, so those are the first ones. */
  #dismissExpired(): void {
    for (let first = this.#waiters[0]; first?.expired; first = this.#waiters[0]) {
      this.#waiters.shift();
      first.resolve({ state: 'in_progress' });
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
