import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import { fit, printable } from '../../../../src/cli/terminal.js';
import { toExpected, type Books, type Count, type Question } from './books.js';
import type { FinalStatus } from './commands.js';
import { kinds, type Finding, type Played, type PlayedPlay, type Sent } from './played.js';
import { outcomeOf, type Row } from './rows.js';
import type { Stage } from './stage.js';

/** What is known of a transfer. */
interface Case extends PlayedPlay {
  readonly stage: Stage;
  readonly row: Row;
  /** What was counted, by status. */
  readonly numbers: ReadonlyMap<FinalStatus, number>;
  /** How often it is booked in all; `undefined` if that was not counted whole. */
  readonly total: number | undefined;
}

/** What is said of a transfer, and the number that the row shows. */
interface JudgedPlay extends Case {
  readonly findings: readonly Finding[];
  readonly times: number | undefined;
}

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

const verdicts = { wrong: 'wrong', open: 'not seen', less: 'less strict', unseen: 'not seen', note: 'right' } as const;

const staysOpen = 'After its last attempt the service is silent: the payout stays open in your books.';
const tryRealTime = 'The service retries after 30 s, which is 0.3 s here: try --real-time.';
const needsStatus = '--count cannot tell a refund from a payment without $STATUS.';
const ifBooked = 'It was acknowledged: right if your app has booked it. Give --count.';
const lazy =
  'The definition ignores each event that it does not know: in docs/services.md `read` ignores by the beginning of a name.';

/** Puts sentences together. */
export function join(...sentences: readonly (string | undefined)[]): string {
  return sentences.filter((each) => each !== undefined && each !== '').join(' ');
}

/** Judges what was played, with what the books show if they can be counted. */
export async function judgeAll(stage: Stage, played: readonly Played[], books: Books | undefined): Promise<Judged[]> {
  const asked = new Map(played.flatMap(({ plays }) => plays).map((play) => [play, ask(play)]));
  const counts = await books?.settle([...asked.values()].flat());
  return played.map((each) => {
    const judged = each.plays.map((play): JudgedPlay => {
      const own = (asked.get(play) ?? []).map((question) => [question.transfer.status, counts?.get(question)] as const);
      return judgePlay(stage, each.row, play, new Map(own));
    });
    return toJudged(stage, each, judged);
  });
}

/** Returns what is to count. */
function ask({ play, transfer, sent }: PlayedPlay): Question[] {
  const taken = findTaken(sent);
  const all = Object.entries(play.booked) as [FinalStatus, number | string][];
  return all.map(([status, right]) => {
    const isExpected = right === 1 && taken.has(status);
    return { transfer: { ...transfer, status }, isExpected, most: right === 0 ? 0 : 1 };
  });
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
  counts: ReadonlyMap<FinalStatus, Count | undefined>,
): JudgedPlay {
  const numbers = new Map(
    [...counts].flatMap(([status, count]) => (typeof count === 'number' ? [[status, count]] : [])),
  );
  const failure = [...counts.values()].find((count) => typeof count === 'object');
  const total = numbers.size < counts.size || counts.size === 0 ? undefined : sum(numbers.values());
  const own: Case = { ...played, stage, row, numbers, total };
  const {
    sent,
    unseen,
    play: { booked },
  } = played;
  const findings: readonly (Finding | undefined)[] = [
    ...sent.flatMap((each) => [judgeStep(own, each), ...(each.findings ?? [])]),
    judgeCounts(own),
    failure && ['open', toExpected(failure)],
    unseen === undefined ? undefined : ['unseen', unseen],
  ];
  const [last, times] = [...numbers].at(-1) ?? [];
  const isNever = Object.values(booked).every((right) => right === 0);
  // An outcome that need not be booked is shown if it was.
  const isShown = times !== 0 || (last !== undefined && booked[last] === 1);
  return {
    ...own,
    findings: findings.filter((each) => each !== undefined),
    times: total === undefined || isNever ? total : isShown ? times : undefined,
  };
}

/** Judges the responses to a step. */
function judgeStep({ stage, row, total }: Case, sent: Sent): Finding | undefined {
  const { step, responses } = sent;
  if (!responses.some(isAcknowledgement)) return judgeRefused(stage, row, sent);
  const { less = '', never = '' } = row;
  const what = `A callback with ${String(step.fault)} was acknowledged`;
  const isFaulty = step.fault === 'broken' || responses.slice(0, 1).some(isAcknowledgement);
  switch (step.taken) {
    case '!':
      return ['less', join(less, step.event === 'unknown' && stage.service.ignoresUnknown ? lazy : undefined)];
    case 'right if booked':
      return isFaulty && total === undefined ? ['unseen', ifBooked] : undefined;
    case '! unless booked':
      if (total === undefined) return ['unseen', ifBooked];
      if (total > 1) return ['wrong', toTwice('SUCCESS', total)];
      return total === 1 ? ['note', 'Acknowledged and booked once, so not lost.'] : ['less', less];
    case 'wrong if booked':
      if (total === undefined) return ['open', `${what}: right only if nothing was booked. Give --count.`];
      return total > 0 ? ['wrong', `${what}, and booked. ${never}`] : undefined;
    case undefined:
    default:
      return undefined;
  }
}

function judgeRefused(
  { silence, options, service }: Stage,
  { less, cost = staysOpen }: Row,
  { step, responses, isFinal }: Sent,
): Finding | undefined {
  const last = responses.at(-1);
  if (last === undefined) return undefined;
  const said = toSaid(last);
  const { refused = step.as === 'once' ? 'right' : 'wrong' } = step;
  if (refused === 'not seen') {
    return ['open', join('A right callback was refused after the forged ones: is the sender locked out?', said)];
  }
  if (refused !== 'wrong') {
    if (!('status' in last)) return ['unseen', join('It got no response.', said)];
    if (refused === 'right') return undefined;
    if (refused === '!' || [401, 403].includes(last.status)) return ['less', join(less, said)];
    return ['unseen', join('It was refused for another reason.', said)];
  }
  const isLate = isTimeout(last) && service.traits.patienceMs !== undefined;
  if (silence !== undefined && !isLate) return ['unseen', silence];
  const isCopy = step.as === 'copy';
  const none = `None of ${responses.length} attempts was acknowledged.`;
  const because = isCopy ? 'The callback was acknowledged, but refused when it came again.' : none;
  // A lease, or a restart, may outlast the fast retries.
  const mayFollow = step.fault === 'broken' || isBusy(last);
  if (mayFollow && !isLate && isFinal !== true && !options.isRealTime) {
    return ['unseen', join(because, tryRealTime, said)];
  }
  return ['wrong', join(because, cost, said)];
}

/** Judges what was counted. */
function judgeCounts({ stage, row, play, sent, numbers, total }: Case): Finding | undefined {
  const all = [...numbers].map(([status, times]) => ({ status, times, right: play.booked[status] }));
  const twice = all.find(({ times, right }) => times > 1 && (right === 1 || right === '0..1'));
  if (twice !== undefined) return ['wrong', toTwice(twice.status, twice.times)];
  if (all.some(({ times, right }) => right === 0 && times > 0)) return judgeUnwanted(row, sent);
  const taken = findTaken(sent);
  const isMissing = ({ status, times, right }: (typeof all)[number]): boolean =>
    taken.has(status) && times === 0 && (right === 1 || (right === '0..1' && total === 0));
  if (total !== undefined && all.some(isMissing)) return judgeMissing(stage);
  if (play.isBlind === true && total !== undefined) return ['unseen', needsStatus];
  const isBoth = all.length > 1 && all.every(({ right, times }) => right === '?' && times > 0);
  return isBoth && row.isOnceInAll !== true ? ['less', String(row.less)] : undefined;
}

function judgeUnwanted({ never = '' }: Row, sent: readonly Sent[]): Finding | undefined {
  const forged = sent.find(({ step }) => step.taken === 'wrong if booked');
  if (forged === undefined) return ['wrong', never];
  // What was acknowledged is judged with its response.
  if (forged.responses.some(isAcknowledgement)) return undefined;
  return ['wrong', `A callback with ${String(forged.step.fault)} was refused, and booked. ${never}`];
}

/** An app of which nothing is known may know an event by what is the same in all samples. */
function judgeMissing({ service: { lookalikes } }: Stage): Finding {
  const [name] = lookalikes;
  const lost = 'It was acknowledged and never booked';
  if (name === undefined) return ['wrong', `${lost}: it is lost.`];
  const asked = `Does your app know an event or a transfer by ${lookalikes.slice(0, 4).join(', ')}, which is the same here?`;
  return ['open', `${lost}. ${asked} Give --event-id ${name}, or --transfer-id ${name}.`];
}

/** Returns one verdict for all plays of a row. */
function toJudged(stage: Stage, played: Played, judged: readonly JudgedPlay[]): Judged {
  const { row, plays } = played;
  const { reversesFailures } = stage.service.traits;
  const inAll = row.isOnceInAll === true ? countInAll(judged) : undefined;
  const all = [
    ...played.findings,
    ...(plays.some(isOfBody) ? tellBodies(judged) : judged.flatMap(({ findings }) => findings)),
    ...(inAll !== undefined && inAll > 1 ? [['wrong', toTwice('REVERSED', inAll)] as const] : []),
  ];
  const isMild = row.isOnceInAll === true && reversesFailures !== true;
  const findings = all.map(([kind, text]): Finding => [isMild && kind === 'wrong' ? 'less' : kind, text]);
  const kind = kinds.find((each) => findings.some(([own]) => own === each)) ?? 'note';
  const toTexts = (name: Finding[0]): string[] => findings.flatMap(([own, text]) => (own === name ? [text] : []));
  const times = judged.flatMap((each) => each.times ?? []);
  return {
    row,
    verdict: verdicts[kind],
    isOpen: kind === 'open',
    responses: plays.flatMap(({ sent }) => sent.flatMap(({ responses }) => responses)),
    bookings: row.isOnceInAll === true || plays.some(isOfBody) ? inAll : times.toSorted((a, b) => b - a)[0],
    because: kind === 'note' ? [] : toTexts(kind).slice(0, 1),
    notes: [...new Set(toTexts('note'))],
    ids: plays.map(({ transfer }) => transfer.externalId),
  };
}

const isOfBody = ({ play }: PlayedPlay): boolean => play.transfer !== undefined;

/** The bodies of a row are counted and named. */
function tellBodies(judged: readonly JudgedPlay[]): Finding[] {
  return kinds.flatMap((kind): Finding[] => {
    const some = judged.filter(({ findings }) => findings.some(([own]) => own === kind));
    const text = some[0]?.findings.find(([own]) => own === kind)?.[1];
    if (text === undefined) return [];
    const list = [...some.slice(0, 3).map(({ play }) => play.title), ...(some.length > 3 ? ['…'] : [])].join('; ');
    return [[kind, `${some.length} of ${judged.length}: ${list}. ${text}`]];
  });
}

/** A failure and its reversal may be one refund, which --count finds under two words. */
function countInAll([both, control]: readonly JudgedPlay[]): number | undefined {
  if (both?.total === undefined || control?.total === undefined || both.numbers.size < 2) return undefined;
  const [failed = 0, reversed = 0] = [both.numbers.get('FAILED'), both.numbers.get('REVERSED')];
  return control.total === 0 ? both.total : Math.max(failed, reversed);
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

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((all, times) => all + times, 0);
