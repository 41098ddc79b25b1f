import { setDeadline } from '../../lib/deadline.js';
import type { PassingEntries } from '../../lib/passing-entries.js';

/** What ends the wait of all deliveries of a line. */
export type LineEnd =
  | { state: 'handled'; fingerprint: string }
  | { state: 'in_progress' }
  | { state: 'unavailable'; error: unknown }
  | { state: 'closing' };

interface Waiter {
  /** Ends the wait. With `undefined` the delivery has the turn. */
  readonly resolve: (result: LineEnd | undefined) => void;
  readonly cancelDeadline: () => void;
  /** Whether its time is up. If the store is being asked, the delivery still waits for that reply. */
  expired: boolean;
}

const firstPauseMs = 50;
const longestPauseMs = 1_000;

/**
 * The deliveries of one callback in this process. One of them has the turn: it asks the store, and then holds the
 * claim. The others wait for what it learns, or for their turn. `tell` ends their waits, `next` gives the turn to one
 * of them, and `end` does both.
 */
export class Line {
  readonly key: string;
  readonly id: string;
  /** They contain this one while a delivery has the turn. */
  readonly #lines: PassingEntries<Line>;
  readonly #waiters: Waiter[] = [];
  #known: LineEnd | undefined;
  /** Whether the store has been asked and has not replied. */
  #isAsking = false;
  #askedAt = 0;
  #askAgainAt = 0;
  #pauseMs = firstPauseMs;
  #wake: (() => void) | undefined;

  /** The delivery that makes it has the turn. */
  constructor(key: string, id: string, lines: PassingEntries<Line>) {
    this.key = key;
    this.id = id;
    this.#lines = lines;
    lines.set(key, this);
  }

  /**
   * Resolves with what is told, with `in_progress` after `waitMs`, or with `undefined` when it is this delivery's turn.
   */
  wait(waitMs: number): Promise<LineEnd | undefined> {
    if (this.#known !== undefined) return Promise.resolve(this.#known);
    return new Promise((resolve) => {
      const cancelDeadline = setDeadline(waitMs, () => {
        waiter.expired = true;
        if (!this.#isAsking) this.#dismiss(waiter);
      });
      const waiter = { resolve, cancelDeadline, expired: false };
      this.#waiters.push(waiter);
    });
  }

  /** The store is asked. Until `endAsking`, deliveries whose time is up keep waiting. */
  beginAsking(): void {
    this.#isAsking = true;
    this.#askedAt = performance.now();
  }

  /** The store has replied, and no delivery has succeeded yet. */
  endAsking(): void {
    this.#isAsking = false;
    for (const waiter of this.#waiters.filter(({ expired }) => expired)) this.#dismiss(waiter);
  }

  /** The store has replied that another process holds the claim. The next request is delayed, longer each time. */
  postpone(): void {
    this.#askAgainAt = performance.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
    this.endAsking();
  }

  /**
   * Waits until the store may be asked again, longer each time, or until `waitEndsAt` for a last time. Resolves with
   * `leave` if the time is up and the store was asked less than 50 ms ago. Otherwise a thousand copies would each ask
   * it once more.
   */
  async pause(waitEndsAt: number): Promise<'ask' | 'leave'> {
    const pauseMs = Math.min(this.#askAgainAt, waitEndsAt) - performance.now();
    if (pauseMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pauseMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const now = performance.now();
    return now < waitEndsAt || now - this.#askedAt >= firstPauseMs ? 'ask' : 'leave';
  }

  /** Tells all deliveries that wait, and those that join the line. They do not ask the store. */
  tell(result: LineEnd): void {
    this.#known = result;
    for (const { cancelDeadline, resolve } of this.#waiters.splice(0)) {
      cancelDeadline();
      resolve(result);
    }
    this.#wake?.();
  }

  /** Gives the turn to the next delivery. If none waits, the line is over. */
  next(): void {
    const waiter = this.#waiters.shift();
    if (waiter === undefined) {
      this.#lines.delete(this.key);
    } else {
      waiter.cancelDeadline();
      waiter.resolve(undefined);
    }
  }

  /** Ends the line: all deliveries get `result`. Returns it. */
  end<R extends LineEnd>(result: R): R {
    this.tell(result);
    this.next();
    return result;
  }

  #dismiss(waiter: Waiter): void {
    this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
    waiter.resolve({ state: 'in_progress' });
  }
}
