import type { ClaimResult } from './claim.js';
import type { ScheduledCall, TimerQueue } from './timers.js';

/** A result that all deliveries of a line can share. */
export type Shared = Exclude<ClaimResult<never>, { state: 'claimed' }>;

interface Waiter {
  /** Ends the wait. With `undefined` the delivery asks the store itself. */
  readonly resolve: (result: Shared | undefined) => void;
  readonly timer: ScheduledCall;
  /** Whether its time is up. If the store is being asked, the delivery still waits for that reply. */
  expired: boolean;
}

export const firstPauseMs = 50;
const longestPauseMs = 1_000;

/** The deliveries of one callback in this process. The first asks the store or holds the claim; the others wait. */
export class Line {
  readonly id: string;
  /** The next line in the same chain of the table. */
  next: Line | undefined;
  askedAt = -Infinity;
  /** Whether the store has been asked and has not replied. */
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

  /** Waits in the line. Resolves with the shared result, or with `undefined` when this delivery must ask the store. */
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

  /** Marks that the store is being asked. Until it replies, deliveries whose time is up keep waiting. */
  beginAsking(now: number): void {
    this.#isAsking = true;
    this.askedAt = now;
  }

  /** Marks that the store has replied with a result that the line does not share. */
  endAsking(): void {
    this.#isAsking = false;
    this.#dismissExpired();
  }

  /** Ends the waits whose time is up. All waits are equally long, so those are the first ones. */
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

  /** Ends every wait with `result`, and every later one too. */
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

  /** Delays the next request, longer each time, because another process holds the claim. */
  postpone(): void {
    this.#askAgainAt = performance.now() + this.#pauseMs;
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
  }

  /** Lets the store be asked immediately, because the claim is free. */
  hurry(): void {
    this.askedAt = this.#askAgainAt = -Infinity;
    this.#pauseMs = firstPauseMs;
  }

  /** Waits until the store may be asked again, or until `waitUntil`. */
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
 * Finds lines by their id, in a hash table of fixed size. A Map would grow and shrink with the deliveries, and V8
 * keeps its outgrown tables, with their lines, until a major GC. Three times as many bytes then survived a minor GC.
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
