import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../../../src/cli/arguments.js';
import { runCommand, type NamedTransfer } from './check-commands.js';

const betweenCountsMs = 200;

/** A handler may go on after its response for so long at least. */
const leastQuietMs = 1_000;

/** What the books show of a transfer, by the command of --count. */
export interface Counted {
  readonly transfer: NamedTransfer;
  /** Whether a booking is missing as long as there is none. */
  readonly isExpected: boolean;
}

/** Counts what was booked. A count that lags is waited for. */
export class Books {
  readonly #command: string;
  readonly #settleMs: number;
  /** From the acknowledgement of the first transfer to its booking. */
  #lagMs = 0;

  constructor(command: string, settleMs: number) {
    this.#command = command;
    this.#settleMs = settleMs;
  }

  /** Whether a failed payout can be counted: in many apps it is a status, and no row. */
  canCount({ status }: NamedTransfer): boolean {
    return status === 'SUCCESS' || /\$\{?STATUS\b|%STATUS%/.test(this.#command);
  }

  /** Throws UsageError unless the command counts nothing before the first callback. */
  async requireEmpty(transfer: NamedTransfer): Promise<void> {
    const counted = await this.#count(transfer);
    if (counted === 0) return;
    if (counted === undefined) throw new UsageError('Expected the command of --count to print a whole number.');
    throw new UsageError(
      `Expected the command of --count to print 0 before the first callback, got ${counted}. Does it use $ID?`,
    );
  }

  /** Resolves with whether the first transfer was booked when it was acknowledged. Throws UsageError if it never is. */
  async awaitFirst(transfer: NamedTransfer): Promise<boolean> {
    const startedAt = performance.now();
    for (let round = 0; performance.now() - startedAt <= this.#settleMs; round += 1) {
      if (((await this.#count(transfer)) ?? 0) > 0) {
        this.#lagMs = round === 0 ? 0 : performance.now() - startedAt;
        return round === 0;
      }
      await pause(betweenCountsMs);
    }
    throw new UsageError(
      `Nothing was counted for ${this.#settleMs / 1_000} s after the first callback was acknowledged. Does --count ` +
        'find it by $ID, its externalId, and does your app book it? If it books later, give a longer --settle.',
    );
  }

  /** Resolves with how often each was booked; `undefined` where the command printed no number. */
  async settle(all: readonly Counted[]): Promise<(number | undefined)[]> {
    const startedAt = performance.now();
    const quietMs = Math.max(leastQuietMs, 2 * this.#lagMs);
    const longestMs = Math.max(this.#settleMs, quietMs + this.#lagMs);
    let most: (number | undefined)[] = all.map(() => undefined);
    for (;;) {
      const afterMs = performance.now() - startedAt;
      const counts: (number | undefined)[] = [];
      for (const { transfer } of all) counts.push(await this.#count(transfer));
      // What was booked once is not lost when its row is moved away.
      most = most.map((before, index) => {
        const now = counts[index];
        return before === undefined || now === undefined ? (now ?? before) : Math.max(before, now);
      });
      const isComplete = all.every(({ isExpected }, index) => !isExpected || (most[index] ?? 0) > 0);
      if (afterMs >= longestMs || (afterMs >= quietMs && isComplete)) return most;
      await pause(betweenCountsMs);
    }
  }

  /** Resolves with `undefined` if the command prints no number. `grep -c` ends with 1 where it counts none. */
  async #count(transfer: NamedTransfer): Promise<number | undefined> {
    const { output } = await runCommand(this.#command, transfer);
    return /^\d+$/.test(output) ? Number(output) : undefined;
  }
}
