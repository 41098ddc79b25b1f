import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import { fit, printable } from '../../../../src/cli/terminal.js';
import { toExpected, type Books, type Count, type Question } from './books.js';
import type { FinalStatus } from './commands.js';
import type { Findings, Numbers } from './findings.js';
import type { Played, PlayedPlay, Sent } from './play.js';
import { outcomeOf, type Row } from './rows.js';
import type { Stage } from './stage.js';

type Counts = ReadonlyMap<FinalStatus, Count>;

/** A row and its verdict. */
export interface Judged {
  readonly row: Row;
  readonly verdict: 'right' | 'wrong' | 'less strict' | 'not seen';
  /** Whether the verdict is missing although the row was played. */
  readonly isOpen: boolean;
  readonly responses: readonly AttemptResponse[];
  readonly bookings: number | undefined;
  /** Why it is not right, in sentences. */
  readonly because: readonly string[];
  readonly notes: readonly string[];
  /** The externalIds of its transfers. */
  readonly ids: readonly string[];
}

/** What decides, in this order. */
const verdicts = { wrong: 'wrong', open: 'not seen', less: 'less strict', unseen: 'not seen' } as const;
const kinds = Object.keys(verdicts) as (keyof typeof verdicts)[];

const staysOpen = 'After its last attempt the service is silent: the payout stays open in your books.';
export const tryRealTime = 'The service retries after 30 s, which is 0.3 s here: try --real-time.';
const needsStatus = '--count cannot tell a refund from a payment without $STATUS.';
const ifBooked = 'It was acknowledged: right if your app has booked it. Give --count.';
const lazy =
  'The definition ignores each event that it does not know: in docs/services.md `read` ignores by the beginning of a name.';

/** Puts sentences together. */
export function join(...sentences: readonly (string | undefined)[]): string | undefined {
  return sentences.filter((each) => each !== undefined && each !== '').join(' ') || undefined;
}

/** Judges what was played, with what the books show if they can be counted. */
export async function judgeAll(stage: Stage, played: readonly Played[], books: Books | undefined): Promise<Judged[]> {
  const usesStatus = books?.usesStatus === true;
  const all = played.flatMap(({ plays }) => plays.map((play) => ({ play, questions: ask(play, usesStatus) })));
  const counts = await books?.settle(all.flatMap(({ questions }) => questions));
  let place = 0;
  const counted = new Map(
    all.map(({ play, questions }) => {
      const own = questions.map(({ transfer }) => [transfer.status, counts?.[place++] ?? 0] as const);
      return [play, counts && new Map(own)];
    }),
  );
  return played.map((each) => {
    const findings = each.plays.map((play) => judgePlay(stage, each.row, play, counted.get(play), usesStatus));
    return toJudged(stage, each, findings);
  });
}

/** Returns what is to count. Without $STATUS there is one number for all. */
function ask({ play, transfer, sent }: PlayedPlay, usesStatus: boolean): Question[] {
  const taken = findTaken(sent);
  const all = Object.entries(play.booked) as [FinalStatus, number | string][];
  const toQuestion = (status: FinalStatus, most: number): Question => {
    return { transfer: { ...transfer, status }, isExpected: play.booked[status] === 1 && taken.has(status), most };
  };
  if (usesStatus) return all.map(([status, right]) => toQuestion(status, right === 0 ? 0 : 1));
  return all.length === 0 ? [] : [toQuestion('SUCCESS', all.every(([, right]) => right === 0) ? 0 : 1)];
}

/** Returns the outcomes of what was acknowledged, and not forged. */
function findTaken(sent: readonly Sent[]): ReadonlySet<FinalStatus> {
  const taken = sent.filter(({ step, responses }) => {
    return (step.as !== 'once' || step.fault === undefined) && responses.some(isAcknowledgement);
  });
  return new Set(taken.flatMap(({ step: { event } }) => outcomeOf[event] ?? []));
}

/** Judges what happened to one transfer. */
function judgePlay(
  stage: Stage,
  row: Row,
  played: PlayedPlay,
  counts: Counts | undefined,
  usesStatus: boolean,
): Findings {
  const all = [...(counts ?? [])];
  const failure = all.map(([, count]) => count).find((count) => typeof count !== 'number');
  const known: Numbers = new Map(
    all.flatMap(([status, count]) => (typeof count === 'number' ? [[status, count]] : [])),
  );
  const numbers = counts === undefined || failure !== undefined ? undefined : known;
  const last = (usesStatus ? Object.keys(played.play.booked).at(-1) : 'SUCCESS') as FinalStatus | undefined;
  const isNever = Object.values(played.play.booked).every((right) => right === 0);
  // Where failures are not counted, 0 does not mean that a booking is missing.
  const isShown = usesStatus || played.play.booked.FAILED === undefined || sum(known) > 0;
  return merge([
    ...played.sent.map((each) => judgeStep(stage, row, each, numbers && sum(numbers))),
    (usesStatus ? judgeStatuses : judgeTotal)(stage, row, played, known),
    { open: failure && toExpected(failure), unseen: played.unseen, numbers },
    { times: isShown && numbers && last ? (isNever ? sum(numbers) : numbers.get(last)) : undefined },
  ]);
}

/** Judges the responses to a step. `total` is how often its transfer is booked; `undefined` if that is not known. */
function judgeStep(stage: Stage, row: Row, sent: Sent, total: number | undefined): Findings {
  const { step, responses } = sent;
  if (!responses.some(isAcknowledgement)) return judgeRefused(stage, row, sent);
  const { less, never } = row;
  const what = `A callback with ${String(step.fault)} was acknowledged`;
  switch (step.taken) {
    case '!':
      return { less: join(less, step.event === 'unknown' && stage.service.ignoresUnknown ? lazy : undefined) };
    case 'right if booked':
      return responses.slice(0, 1).some(isAcknowledgement) && total === undefined ? { unseen: ifBooked } : {};
    case '! unless booked':
      if (total === undefined) return { unseen: ifBooked };
      if (total > 1) return { wrong: toTwice('SUCCESS', total) };
      return total === 1 ? { note: 'Acknowledged and booked once, so not lost.' } : { less };
    case 'wrong if booked':
      if (total === undefined) return { open: `${what}: right only if nothing was booked. Give --count.` };
      return total > 0 ? { wrong: `${what}, and booked. ${String(never)}` } : {};
    case undefined:
    default:
      return {};
  }
}

function judgeRefused(stage: Stage, { less, cost = staysOpen }: Row, { step, responses, isFinal }: Sent): Findings {
  const last = responses.at(-1);
  if (last === undefined) return {};
  const said = toSaid(last);
  const { refused = step.as === 'once' ? 'right' : 'wrong' } = step;
  if (refused === 'not seen') {
    return { open: join('A right callback was refused after the forged ones: is the sender locked out?', said) };
  }
  if (refused !== 'wrong' && !('status' in last)) return { unseen: join('It got no response.', said) };
  if (refused === '!') return { less: join(less, said) };
  if (refused === 'right') return {};
  if (refused === '! if 401') {
    const isUnauthorized = 'status' in last && [401, 403].includes(last.status);
    return isUnauthorized ? { less: join(less, said) } : { unseen: join('It was refused for another reason.', said) };
  }
  const isLate = isTimeout(last) && stage.service.traits.patienceMs !== undefined;
  if (stage.silence !== undefined && !isLate) return { unseen: stage.silence };
  const because =
    step.as === 'copy'
      ? 'The callback was acknowledged, but refused when it came again.'
      : `None of ${responses.length} attempts was acknowledged.`;
  // A lease, or a restart, may outlast the fast retries.
  const isOpen = !stage.options.isRealTime && isFinal !== true && !isLate && isBusy(last);
  return isOpen ? { unseen: join(because, tryRealTime, said) } : { wrong: join(because, cost, said) };
}

/** Judges what was counted under each status. */
function judgeStatuses(stage: Stage, row: Row, { play, sent }: PlayedPlay, numbers: Numbers): Findings {
  const all = [...numbers].map(([status, times]) => ({ status, times, right: play.booked[status] }));
  const twice = all.find(({ times, right }) => times > 1 && (right === 1 || right === '0..1'));
  if (twice !== undefined) return { wrong: toTwice(twice.status, twice.times) };
  if (all.some(({ times, right }) => right === 0 && times > 0)) return judgeUnwanted(row, sent);
  const isCounted = numbers.size === Object.keys(play.booked).length;
  const taken = findTaken(sent);
  const isMissing = all.some(({ status, times, right }) => right === 1 && times === 0 && taken.has(status));
  const isNothing = taken.size > 0 && sum(numbers) === 0 && all.some(({ right }) => right === '0..1');
  if (isCounted && (isMissing || isNothing)) return judgeMissing(stage);
  const isBoth =
    row.isOnceInAll !== true && all.length > 1 && all.every(({ right, times }) => right === '?' && times > 0);
  return isBoth ? { less: row.less } : {};
}

/** Judges the one number of a command that does not use $STATUS. */
function judgeTotal(stage: Stage, row: Row, { play, sent }: PlayedPlay, numbers: Numbers): Findings {
  const total = numbers.get('SUCCESS');
  if (total === undefined) return {};
  const events = new Set(play.send.map(({ event }) => event));
  const isNever = Object.values(play.booked).every((right) => right === 0);
  if (isNever) return total > 0 ? judgeUnwanted(row, sent) : {};
  if (events.has('reversed')) return { unseen: needsStatus };
  if (!events.has('failed') || !events.has('success')) {
    if (total > 1) return { wrong: toTwice('SUCCESS', total) };
    const isMissing = total === 0 && play.booked.SUCCESS === 1 && findTaken(sent).has('SUCCESS');
    if (isMissing) return judgeMissing(stage);
  }
  // A failure may be a status, and no row. One row of a failure that came once is a refund, or a payment.
  const isKnown = !events.has('failed') || events.has('success') || (row.name === 'failed') === (total === 0);
  return isKnown ? {} : { unseen: needsStatus };
}

function judgeUnwanted({ never = '' }: Row, sent: readonly Sent[]): Findings {
  const forged = sent.find(({ step }) => step.taken === 'wrong if booked');
  if (forged === undefined) return { wrong: never };
  // What was acknowledged is judged with its response.
  const isTaken = forged.responses.some(isAcknowledgement);
  return isTaken ? {} : { wrong: `A callback with ${String(forged.step.fault)} was refused, and booked. ${never}` };
}

/** An app of which nothing is known may know an event by what is the same in all samples. */
function judgeMissing({ service: { lookalikes } }: Stage): Findings {
  const [name] = lookalikes;
  const wrong = 'It was acknowledged and never booked';
  if (name === undefined) return { wrong: `${wrong}: it is lost.` };
  const asked = `Does your app know an event or a transfer by ${lookalikes.slice(0, 4).join(', ')}, which is the same here?`;
  return { open: `${wrong}. ${asked} Give --event-id ${name}, or --transfer-id ${name}.` };
}

/** Returns one verdict for all plays of a row. */
function toJudged(stage: Stage, { row, plays, beside }: Played, findings: readonly Findings[]): Judged {
  const { reversesFailures } = stage.service.traits;
  const merged = merge([beside, row.isOnceInAll === true ? judgeOnceInAll(findings) : mergePlays(plays, findings)]);
  const isMild = row.isOnceInAll === true && reversesFailures !== true;
  const found: Findings = isMild ? { ...merged, wrong: undefined, less: merged.wrong } : merged;
  const kind = kinds.find((each) => found[each] !== undefined);
  return {
    row,
    verdict: kind === undefined ? 'right' : verdicts[kind],
    isOpen: kind === 'open',
    responses: plays.flatMap(({ sent }) => sent.flatMap(({ responses }) => responses)),
    bookings: found.times,
    because: kind === undefined ? [] : [String(found[kind])],
    notes: found.note === undefined ? [] : [found.note],
    ids: plays.map(({ transfer }) => transfer.externalId),
  };
}

/** The bodies of a row are counted and named. The worst of the other plays decides. */
function mergePlays(plays: readonly PlayedPlay[], findings: readonly Findings[]): Findings {
  if (plays.every(({ play }) => play.transfer === undefined)) {
    return merge(findings.toSorted((a, b) => (b.times ?? 0) - (a.times ?? 0)));
  }
  const tell = (kind: (typeof kinds)[number] | 'note'): string | undefined => {
    const some = findings.flatMap((each, index) => (each[kind] === undefined ? [] : [plays[index]?.play.title]));
    const sentence = findings.find((each) => each[kind] !== undefined)?.[kind];
    const list = [...some.slice(0, 3), ...(some.length > 3 ? ['…'] : [])].join('; ');
    return sentence && `${some.length} of ${plays.length}: ${list}. ${sentence}`;
  };
  return { wrong: tell('wrong'), open: tell('open'), less: tell('less'), unseen: tell('unseen'), note: tell('note') };
}

/** A failure and its reversal may be one refund, which --count finds under two words. */
function judgeOnceInAll([both = {}, control = {}]: readonly Findings[]): Findings {
  const [failed = 0, reversed = 0] = [both.numbers?.get('FAILED'), both.numbers?.get('REVERSED')];
  const times = control.numbers?.get('REVERSED') === 0 ? failed + reversed : Math.max(failed, reversed);
  if (both.unseen !== undefined || !both.numbers || !control.numbers) return { ...both, times: undefined };
  return { ...both, times, wrong: both.wrong ?? (times > 1 ? toTwice('REVERSED', times) : undefined) };
}

/** Puts findings together: the first sentence of each kind, and all notes. */
function merge(all: readonly Findings[]): Findings {
  const first = <K extends keyof Findings>(kind: K) => ({
    [kind]: all.find((each) => each[kind] !== undefined)?.[kind],
  });
  const rest = ['numbers', 'times'] as const;
  return Object.assign(
    { note: join(...new Set(all.map(({ note }) => note))) },
    ...[...kinds, ...rest].map(first),
  ) as Findings;
}

const toTwice = (status: FinalStatus, times: number): string =>
  status === 'REVERSED'
    ? `The money of one payout was refunded ${times} times.`
    : `One payout was booked ${times} times.`;

/** Returns what an endpoint said with a refusal, in a sentence. */
export function toSaid(response: AttemptResponse): string | undefined {
  const said = ('status' in response ? response.body : response.error).trim().replaceAll(/\s+/g, ' ');
  if (said === '') return undefined;
  return `${'status' in response ? 'It responded' : 'The error was'}: ${fit(printable(said), 160)}`;
}

const isTimeout = (response: AttemptResponse): boolean =>
  'error' in response && /^no (?:end of the )?response/.test(response.error);

/** Whether the endpoint may do better in a while. */
const isBusy = (response: AttemptResponse): boolean =>
  !('status' in response) || [409, 423, 425, 429, 502, 503, 504].includes(response.status);

const sum = (numbers: Numbers): number => [...numbers.values()].reduce((all, times) => all + times, 0);
