import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../../../../src/cli/arguments.js';
import { fit, printable } from '../../../../src/cli/terminal.js';
import { runCommand, type Transfer } from './commands.js';

const betweenCountsMs = 200;

/** A handler may go on after its response for so long at least. */
const leastQuietMs = 1_000;

/** A database that --break has paused lets its command hang, or fail. */
const whileBroken = [5_000, 'ignore'] as const;

/** What is counted. */
export interface Question {
  readonly transfer: Transfer;
  /** Whether a booking is missing as long as there is none. */
  readonly isExpected: boolean;
  /** The highest number that is right. */
  readonly most: number;
}

/** How often a transfer is booked, or what the command printed if it is not a whole number. */
export type Count = number | { readonly printed: string };

/** Counts what was booked, by the command of --count. A count that lags is waited for. */
export class Books {
  /** Whether the command tells a failed payout from a paid one: in many apps a failure is a status, and no row. */
  readonly usesStatus: boolean;
  readonly #command: string;
  readonly #settleMs: number;
  /** From the acknowledgement of the first transfer to its booking. */
  #lagMs = 0;

  constructor(command: string, settleMs: number) {
    this.#command = command;
    this.#settleMs = settleMs;
    const uses = (name: string): boolean => new RegExp(`\\$\\{?${name}\\b|%${name}%`).test(command);
    // A command without $ID is a script, which has all of it in its environment.
    this.usesStatus = uses('STATUS') || !uses('ID');
  }

  /** Throws UsageError unless the command counts nothing before the first callback. */
  async requireEmpty(transfer: Transfer): Promise<void> {
    const counted = await this.#count(transfer);
    if (counted === 0) return;
    if (typeof counted !== 'number') throw toPrintedError(counted);
    throw new UsageError(
      `Expected the command of --count to print 0 before the first callback, got ${counted}. Does it use $ID?`,
    );
  }

  /** Resolves with whether the first transfer was booked when it was acknowledged. Throws UsageError if it never is. */
  async awaitFirst(transfer: Transfer): Promise<boolean> {
    const afterMs = await this.#findBooking(transfer);
    if (typeof afterMs === 'number') {
      this.#lagMs = afterMs;
      return afterMs === 0;
    }
    if (typeof afterMs.last !== 'number') throw toPrintedError(afterMs.last);
    throw new UsageError(
      `Nothing was counted for ${this.#settleMs / 1_000} s after the first callback was acknowledged. Does --count ` +
        `find it by $ID, its externalId${this.usesStatus ? ', and with SUCCESS as $STATUS' : ''}, and does your app book ` +
        'it? If it books later, give a longer --settle.',
    );
  }

  /** Resolves with whether a transfer is booked within the time that a booking may take. */
  async awaitBooking(transfer: Transfer): Promise<boolean> {
    const counted: Transfer = this.usesStatus ? transfer : { ...transfer, status: 'SUCCESS' };
    return typeof (await this.#findBooking(counted)) === 'number';
  }

  /** Resolves with the milliseconds until a transfer was booked, or with the last count if it was not. */
  async #findBooking(transfer: Transfer): Promise<number | { readonly last: Count }> {
    const startedAt = performance.now();
    for (let round = 0; ; round += 1) {
      const last = await this.#count(transfer);
      const afterMs = performance.now() - startedAt;
      if (typeof last === 'number' && last > 0) return round === 0 ? 0 : afterMs;
      if (afterMs > this.#settleMs) return { last };
      await pause(betweenCountsMs);
    }
  }

  /** Resolves with whether a transfer is booked now, while the app should not be able to. */
  async isBookedWhileBroken(transfer: Transfer): Promise<boolean> {
    const count = await this.#count(transfer, ...whileBroken);
    return typeof count === 'number' && count > 0;
  }

  /** Resolves with what was counted of each when nothing more is to come: each counts by its last round. */
  async settle(all: readonly Question[]): Promise<ReadonlyMap<Question, Count>> {
    const startedAt = performance.now();
    const quietMs = Math.max(leastQuietMs, 2 * this.#lagMs);
    const longestMs = Math.max(this.#settleMs, quietMs + this.#lagMs);
    const highest = new Map<Question, number>();
    for (;;) {
      const afterMs = performance.now() - startedAt;
      const counts = new Map<Question, Count>();
      for (const each of all) {
        const count = await this.#count(each.transfer);
        counts.set(each, count);
        if (typeof count === 'number') highest.set(each, Math.max(highest.get(each) ?? 0, count));
      }
      const isComplete = all.every((each) => {
        return typeof counts.get(each) === 'number' && (!each.isExpected || (highest.get(each) ?? 0) > 0);
      });
      if (afterMs >= longestMs || (afterMs >= quietMs && isComplete)) {
        return new Map([...counts].map(([each, last]) => [each, toFinal(last, highest.get(each) ?? 0, each.most)]));
      }
      await pause(betweenCountsMs);
    }
  }

  /** `grep -c` ends with 1 where it counts none. */
  async #count(transfer: Transfer, timeoutMs?: number, stderr?: 'ignore'): Promise<Count> {
    const { output } = await runCommand(this.#command, transfer, timeoutMs, stderr);
    return /^\d+$/.test(output) ? Number(output) : { printed: output };
  }
}

/** An earlier number that was too high remains wrong. A booking is not lost when its row moves away. */
function toFinal(last: Count, highest: number, right: number): Count {
  const isEarlier = typeof last === 'number' ? last === 0 : highest > right;
  return isEarlier ? highest : last;
}

const toPrintedError = (count: Exclude<Count, number>): UsageError => new UsageError(toExpected(count));

/** Returns what a command should print, and what it has printed. */
export function toExpected({ printed }: Exclude<Count, number>): string {
  const got = printed === '' ? 'nothing' : fit(printable(printed), 60);
  return `Expected the command of --count to print a whole number, got ${got}.`;
}
