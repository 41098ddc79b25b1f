import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import type { Bookings, Countable } from './books.js';
import type { NamedTransfer } from './commands.js';
import type { Stage } from './stage.js';

/** One thing that a right endpoint does: a row of the table. */
export interface Trial {
  readonly name: string;
  /** What a right endpoint does. */
  readonly right: string;
  /** Whether the document of the service demands it, or an endpoint may do without. */
  readonly group: 'documented' | 'stricter';
  /** Resolves with `undefined` if the options do not allow it. */
  readonly play: (stage: Stage) => Promise<Tried | undefined>;
}

/** What came of a trial on the wire, and how it is judged when the bookings are counted. */
export interface Tried {
  readonly responses: readonly AttemptResponse[];
  readonly toCount: readonly Countable[];
  /** Takes what the books show of each of `toCount`. */
  readonly judge: (bookings: readonly Bookings[]) => Findings;
}

/** Each is one or more sentences. */
export interface Findings {
  /** What a right endpoint does not do, and what it costs. */
  readonly wrong?: string | undefined;
  /** Why no verdict is possible. */
  readonly unseen?: string | undefined;
  readonly note?: string | undefined;
  /** How often the transfer was booked, if the row has one and it was counted. */
  readonly times?: number | undefined;
}

/** Why the verdict needs what the books do not show; `undefined` if it does not. */
export type FindGap = (bookings: Bookings) => string | undefined;

const uncounted: Bookings = { kind: 'uncounted' };

/** Judges a transfer that must be booked once by its `wire`, which the responses show, and by its bookings. */
export function judgeOnce(
  transfer: NamedTransfer,
  responses: readonly AttemptResponse[],
  wire: Findings = {},
  findGap: FindGap = () => undefined,
): Tried {
  const isExpected = responses.some(isAcknowledgement);
  return {
    responses,
    toCount: [{ transfer, isExpected }],
    judge: ([bookings = uncounted]) => {
      const wrong = join(wire.wrong, findBookingFault(bookings, isExpected));
      return { ...wire, wrong, unseen: wire.unseen ?? findGap(bookings), times: toTimes(bookings) };
    },
  };
}

/** Judges several transfers, each with one to count, by the one with the worst findings. */
export function judgeWorst(all: readonly Tried[]): Tried {
  return {
    responses: all.flatMap(({ responses }) => responses),
    toCount: all.flatMap(({ toCount }) => toCount),
    judge(bookings) {
      const findings = all.map((each, index) => each.judge(bookings.slice(index, index + 1)));
      const mostBooked = findings.toSorted((a, b) => (b.times ?? 0) - (a.times ?? 0));
      const faulty = mostBooked.find(({ wrong }) => wrong !== undefined);
      return faulty ?? mostBooked.find(({ unseen }) => unseen !== undefined) ?? mostBooked[0] ?? {};
    },
  };
}

/** Judges by the responses alone. */
export function judgeWire(responses: readonly AttemptResponse[], findings: Findings = {}): Tried {
  return { responses, toCount: [], judge: () => findings };
}

/** How often a transfer was booked, as a row shows it. */
export function toTimes(bookings: Bookings | undefined): number | undefined {
  if (bookings === undefined || bookings.kind === 'uncounted') return undefined;
  // Where failures are not counted, 0 is no booking that is missing.
  return bookings.kind === 'without status' && bookings.times === 0 ? undefined : bookings.times;
}

function findBookingFault(bookings: Bookings, isAcknowledged: boolean): string | undefined {
  if (bookings.kind === 'uncounted') return undefined;
  const { times } = bookings;
  const more = times > 1 ? `One payout was booked ${times} times.` : undefined;
  if (bookings.kind === 'without status') return more;
  if (bookings.asPaid > 0) return join('A failed payout was booked as paid.', more);
  return times === 0 && isAcknowledged ? 'It was acknowledged and never booked: it is lost.' : more;
}

export function join(...sentences: readonly (string | undefined)[]): string | undefined {
  return sentences.filter((each) => each !== undefined).join(' ') || undefined;
}

export const staysOpen = 'After its last attempt the service is silent: the payout stays open in your books.';

export const tryRealTime = 'The service retries after 30 s, which is 0.3 s here: try --real-time.';

/** Judges attempts that were not acknowledged as they should be. `cost` is what that costs. */
export function judgeRefused(
  stage: Stage,
  responses: readonly AttemptResponse[],
  because: string,
  cost: string,
): Findings {
  if (stage.silence !== undefined) return { unseen: stage.silence };
  const last = responses.at(-1);
  // A lease, or a restart, may outlast the fast retries.
  if (!stage.isRealTime && last !== undefined && isBusy(last)) return { unseen: `${because} ${tryRealTime}` };
  return { wrong: `${because} ${cost}` };
}

/** Judges attempts of which one must be acknowledged. */
export function judgeAcknowledged(stage: Stage, responses: readonly AttemptResponse[], cost = staysOpen): Findings {
  if (responses.some(isAcknowledgement)) return {};
  return judgeRefused(stage, responses, `None of ${responses.length} attempts was acknowledged.`, cost);
}

/** Whether the endpoint may do better in a while. */
function isBusy(response: AttemptResponse): boolean {
  return !('status' in response) || [409, 423, 425, 429, 502, 503, 504].includes(response.status);
}
