import { setTimeout as pause } from 'node:timers/promises';
import { UsageError } from '../../../../src/cli/arguments.js';
import { runCommand, type NamedTransfer } from './commands.js';

const betweenCountsMs = 200;

/** A handler may go on after its response for so long at least. */
const leastQuietMs = 1_000;

/** A database that --break has paused lets its command hang, or fail. */
const whileBroken = { timeoutMs: 5_000, stderr: 'ignore' } as const;

/** A transfer of which the bookings are counted. */
export interface Countable {
  readonly transfer: NamedTransfer;
  /** Whether a booking is missing as long as there is none. */
  readonly isExpected: boolean;
}

/** What the books show of a transfer. */
export type Bookings =
  /** Without --count, or where the command printed no number. */
  | { readonly kind: 'uncounted' }
  /** `asPaid` is how often a failed payout counts as a success. */
  | { readonly kind: 'counted'; readonly times: number; readonly asPaid: number }
  /** A failed payout, counted by a command that does not use $STATUS: as a failure, as a success, or both. */
  | { readonly kind: 'without status'; readonly times: number };

const uncounted: Bookings = { kind: 'uncounted' };

type Count = number | undefined;

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
    this.usesStatus = /\$\{?STATUS\b|%STATUS%/.test(command);
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
        `find it by $ID, its externalId${this.usesStatus ? ', and with SUCCESS as $STATUS' : ''}, and does your app book ` +
        'it? If it books later, give a longer --settle.',
    );
  }

  /** Resolves with whether a transfer is booked now, while the app should not be able to. */
  async isBookedWhileBroken(transfer: NamedTransfer): Promise<boolean> {
    return ((await this.#count(transfer, whileBroken)) ?? 0) > 0;
  }

  /** Resolves with what is booked of each. */
  async settle(all: readonly Countable[]): Promise<Bookings[]> {
    const questions = all.map(({ transfer, isExpected }): Countable => {
      return { transfer, isExpected: isExpected && this.#tellsStatusOf(transfer) };
    });
    const failed = all.filter(({ transfer: { status } }) => status === 'FAILED' && this.usesStatus);
    const asPaid = failed.map(({ transfer }): Countable => {
      return { transfer: { ...transfer, status: 'SUCCESS' }, isExpected: false };
    });
    const counts = await this.#countAll([...questions, ...asPaid]);
    return all.map((each, index) => {
      const times = counts[index];
      if (times === undefined) return uncounted;
      if (!this.#tellsStatusOf(each.transfer)) return { kind: 'without status', times };
      const place = failed.indexOf(each);
      return { kind: 'counted', times, asPaid: place === -1 ? 0 : (counts[all.length + place] ?? 0) };
    });
  }

  #tellsStatusOf({ status }: NamedTransfer): boolean {
    return status === 'SUCCESS' || this.usesStatus;
  }

  /** Resolves with the most that was counted of each, when nothing more is to come. */
  async #countAll(all: readonly Countable[]): Promise<Count[]> {
    const startedAt = performance.now();
    const quietMs = Math.max(leastQuietMs, 2 * this.#lagMs);
    const longestMs = Math.max(this.#settleMs, quietMs + this.#lagMs);
    let most: Count[] = all.map(() => undefined);
    for (;;) {
      const afterMs = performance.now() - startedAt;
      const counts: Count[] = [];
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
  async #count(transfer: NamedTransfer, options?: Parameters<typeof runCommand>[2]): Promise<Count> {
    const { output } = await runCommand(this.#command, transfer, options);
    return /^\d+$/.test(output) ? Number(output) : undefined;
  }
}
