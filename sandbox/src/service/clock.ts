import { invalidArgument, maxTimerMs, wholeNumber } from '../../../src/lib/checks.js';

/** At a higher speed, the pause before a retry would be shorter than the shortest timer. */
export const maxSpeed = 1_000_000;

/** When a manual clock starts: a repeated run shows the same timestamps. */
const manualStartMs = Date.parse('2026-01-15T10:30:00.000Z');

/**
 * Sandbox time, and the work that is due in it. Times are milliseconds of Unix time, as `data.timestamp` shows them.
 */
export class SandboxClock {
  /** In the order in which it is due. */
  readonly #due: { readonly dueMs: number; readonly work: () => Promise<void> }[] = [];
  readonly #running = new Set<Promise<unknown>>();
  /** Whether time moves only by `advance`. */
  readonly isManual: boolean;
  #speed: number;
  /** When the speed was last set, by the clock of this process. */
  #startedAt = performance.now();
  /** The sandbox time at that moment, plus what it was advanced by since. */
  #baseMs: number;
  #timer: NodeJS.Timeout | undefined;
  #advanced = Promise.resolve();
  #stopped = false;
  #waiting: (() => void)[] = [];

  /** Time starts at real time and runs `speed` times as fast. A manual clock stands still until it is advanced. */
  constructor(speed: number | 'manual') {
    this.isManual = speed === 'manual';
    this.#baseMs = speed === 'manual' ? manualStartMs : Date.now();
    this.#speed = speed === 'manual' ? 0 : speed;
  }

  /** How many times as fast as real time it runs; 0 for a manual clock, and for one that is paused. */
  get speed(): number {
    return this.#speed;
  }

  /** When the next work is due. */
  get nextMs(): number | undefined {
    return this.#due[0]?.dueMs;
  }

  nowMs(): number {
    return this.#baseMs + Math.round((performance.now() - this.#startedAt) * this.#speed);
  }

  /** Changes how fast time runs from now on; 0 pauses it. */
  setSpeed(speed: number): void {
    wholeNumber('speed', speed, { min: 0, max: maxSpeed });
    if (this.isManual) throw invalidArgument('speed', 'left as it is, since the clock is manual', speed);
    this.#baseMs = this.nowMs();
    this.#startedAt = performance.now();
    this.#speed = speed;
    this.#setTimer();
  }

  /** Forgets everything that is due. */
  forget(): void {
    this.#due.length = 0;
    clearTimeout(this.#timer);
    this.#wake();
  }

  /** Runs `work`, which must not reject, when sandbox time reaches `dueMs`. Ignored after `stop`. */
  at(dueMs: number, work: () => Promise<void>): void {
    if (this.#stopped) return;
    this.#due.splice(this.#countUpTo(dueMs), 0, { dueMs, work });
    this.#setTimer();
  }

  /** Counts `work` as under way, for `advance`, `idle` and `stop`. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
      this.#wake();
    }
  }

  /** Moves time on by `ms`. Stops at each instant at which work is due until that work has ended. */
  async advance(ms: number): Promise<void> {
    wholeNumber('ms', ms, { min: 0 });
    // Serialised: concurrent calls would corrupt the clock.
    this.#advanced = this.#advanced.then(() => this.#advanceTo(this.nowMs() + ms));
    await this.#advanced;
  }

  /** Resolves when nothing is under way and, unless the clock is manual, nothing is due. */
  async idle(): Promise<void> {
    while (this.#running.size > 0 || (!this.isManual && this.nextMs !== undefined)) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  /** Forgets everything that is due. Resolves when the work under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.forget();
    await this.idle();
  }

  async #advanceTo(targetMs: number): Promise<void> {
    for (;;) {
      // The end of an attempt decides whether and when another one is due.
      await Promise.allSettled(this.#running);
      const { nextMs } = this;
      if (nextMs === undefined || nextMs > targetMs) break;
      this.#jumpTo(nextMs);
      this.#runDue();
    }
    this.#jumpTo(targetMs);
    this.#setTimer();
  }

  #jumpTo(ms: number): void {
    this.#baseMs += Math.max(0, ms - this.nowMs());
  }

  #runDue(): void {
    for (const { work } of this.#due.splice(0, this.#countUpTo(this.nowMs()))) void this.track(work());
  }

  /** Counts the work that is due by `ms`, by binary search: 20 000 transfers may be waiting. */
  #countUpTo(ms: number): number {
    let [low, high] = [0, this.#due.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#due[middle]?.dueMs ?? Infinity) <= ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    const { nextMs } = this;
    if (this.#speed === 0 || nextMs === undefined) return;
    // Node fires a timer immediately if its delay is longer than it can keep.
    const delayMs = Math.min(maxTimerMs, Math.max(0, Math.ceil((nextMs - this.nowMs()) / this.#speed)));
    this.#timer = setTimeout(() => {
      this.#runDue();
      this.#setTimer();
    }, delayMs);
  }

  /** Lets every caller of `idle` check again. */
  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
