import type { ClaimResult } from './claim.js';
import type { ScheduledCall, TimerQueue } from './timers.js';

/** A result that all deliveries of a line can share. */
export type Shared = Exclude<ClaimResult<never>, { state: 'claimed' }>;

interface Waiter {
  /** `undefined` makes the delivery the one that asks the store. */
  readonly resolve: (result: Shared | undefined) => void;
  readonly timer: ScheduledCall;
  /** Its time is up. While the store is being asked, it still takes that reply. */
  expired: boolean;
}

export const firstPauseMs = 50;
const longestPauseMs = 1_000;

/** The deliveries of one callback in this process. The first asks the store or holds the claim, the others wait. */
export class Line {
  readonly id: string;
  /** The next line in the same chain of the table. */
  next: Line | undefined;
  askedAt = -Infinity;
  /** The store has been asked and has not replied. */
  #isAsking = false;
  #askAgainAt = -Infinity;
  #pauseMs = firstPauseMs;
  readonly #waits: TimerQueue;
  readonly #waiters: Waiter[] = [];
  #wake: (() => void) | undefined;
  #known: Shared | undefined;

  constructor(id: string, waits: TimerQueue) {
    this.id = id;
    this.#waits = waits;
  }

  /** Resolves with what the line learns, or with `undefined` when it is this delivery's turn to ask the store. */
  wait(): Promise<Shared | undefined> {
    if (this.#known !== undefined) return Promise.resolve(this.#known);
    return new Promise((resolve) => {
      const timer = this.#waits.set(() => {
        waiter.expired = true;
        if (!this.#isAsking) this.#dismissExpired();
      });
      const waiter = { resolve, timer, expired: false };
      this.#waiters.push(waiter);
    });
  }

  /** The store is asked. Who waits for its reply waits on when the time is up. */
  beginAsking(now: number): void {
    this.#isAsking = true;
    this.askedAt = now;
  }

  /** The store has replied, and its reply was not for all. */
  endAsking(): void {
    this.#isAsking = false;
    this.#dismissExpired();
  }

  /** Ends the waits whose time is up. They came first: all waits are equally long. */
  #dismissExpired(): void {
    while (this.#waiters[0]?.expired) this.#waiters.shift()?.resolve({ state: 'in_progress' });
  }

  /** Lets the next delivery ask the store. Returns whether there is one. */
  callNext(): boolean {
    const waiter = this.#waiters.shift();
    if (waiter === undefined) return false;
    this.#waits.clear(waiter.timer);
    waiter.resolve(undefined);
    return true;
  }

  /** Ends every wait with `result`, and those that are still to come. */
  learn(result: Shared): void {
    this.#known = result;
    this.endAll(result);
  }

  /** Ends every wait with `result`. */
  endAll(result: Shared): void {
    for (const { timer, resolve } of this.#waiters.splice(0)) {
      this.#waits.clear(timer);
      resolve(result);
    }
    this.#wake?.();
  }

  /** Another process holds the claim: the next question waits, longer each time. */
  postpone(): void {
    this.#askAgainAt = performance.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
  }

  /** The claim is free: the store may be asked immediately. */
  hurry(): void {
    this.askedAt = this.#askAgainAt = -Infinity;
    this.#pauseMs = firstPauseMs;
  }

  /** Waits until the store is to be asked again, or until `waitUntil`. */
  async pauseUntilAsking(waitUntil: number): Promise<void> {
    const pauseMs = Math.min(this.#askAgainAt, waitUntil) - performance.now();
    if (pauseMs <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pauseMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

const chains = 1_024;

/**
 * The lines by their id: a hash table of fixed size. A Map is filled and emptied with every delivery, and V8 keeps each
 * table that it has outgrown, with the lines in it, until a major GC. Three times as many bytes survived a minor GC.
 */
export class LineTable {
  readonly #chains = new Array<Line | undefined>(chains).fill(undefined);

  get(id: string): Line | undefined {
    let line = this.#chains[toChain(id)];
    while (line !== undefined && line.id !== id) line = line.next;
    return line;
  }

  add(line: Line): void {
    const chain = toChain(line.id);
    line.next = this.#chains[chain];
    this.#chains[chain] = line;
  }

  /** Does nothing if the line is no longer in the table. */
  delete(line: Line): void {
    const chain = toChain(line.id);
    let other = this.#chains[chain];
    if (other === line) this.#chains[chain] = line.next;
    for (; other !== undefined; other = other.next) if (other.next === line) other.next = line.next;
  }

  all(): Line[] {
    const lines: Line[] = [];
    for (let line of this.#chains) for (; line !== undefined; line = line.next) lines.push(line);
    return lines;
  }
}

function toChain(id: string): number {
  let hash = 0;
  for (let index = 0; index < id.length; index += 1) hash = (31 * hash + id.charCodeAt(index)) | 0;
  return hash & (chains - 1);
}
