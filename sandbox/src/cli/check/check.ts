import { isAcknowledgement, isSilent } from '../../attempt/attempt.js';
import { allowPositionals, parseArguments, toNumber, UsageError } from '../../../../src/cli/arguments.js';
import { findConfigFile } from '../../../../src/cli/config-file.js';
import { didYouMean } from '../../../../src/lib/did-you-mean.js';
import { findEndpoint, missingUrl, requireUrl, type Endpoint } from '../endpoint-options.js';
import { Books } from './books.js';
import { Breakage } from './commands.js';
import { failOnce } from './handler-fails.js';
import { help, options as known } from './help.js';
import { judgeAll, type Judged } from './judge.js';
import { requireServiceValue } from './load-by-name.js';
import { playRow, toUnjudged, type Played } from './play.js';
import { Progress } from './progress.js';
import { explainKey, explainRefusal, type Refusal } from './refusal.js';
import { isWrong, report, reportOrigin, reportPlan } from './report.js';
import { breaking, findGap, listBookings, rows, type Play, type Row } from './rows.js';
import { Stage, type StageOptions } from './stage.js';
import { startService, type RunningService } from './start-service.js';

export { help };

type Values = ReturnType<typeof parseArguments<typeof known>>['values'];

/** Plays all cases, and judges the endpoint. */
export async function run(args: readonly string[]): Promise<number> {
  requireServiceValue(args);
  const { values, positionals } = parseArguments(args, known);
  allowPositionals(positionals, 0, '--to');
  requireFit(values);
  const { strict: isStrict = false, json: isJson = false } = values;
  const endpoint = await findCallbackUrl(values);
  const { callbackUrl } = endpoint;
  const service = await startService(values, typeof callbackUrl === 'string' ? callbackUrl : undefined);
  if (service.origin !== undefined) reportOrigin(service.origin, isJson);
  const progress = new Progress();
  const options = toStageOptions(values, service.service, progress);
  const stage = await Stage.open(service.service, endpoint, options);
  const books = values.count === undefined ? undefined : new Books(values.count, options.settleMs);
  const stopListing = listOnSignal(stage, progress);
  try {
    const { judged, refusal, isMended } = await playAll({ stage, books, values, service, progress });
    progress.end();
    const keyRefusal = service.findKeyRefusal();
    const advice = keyRefusal === undefined ? undefined : explainKey(keyRefusal, String(service.url));
    report(judged, { isStrict, isJson, refusal, advice, unseen: findUnseen(values, books, judged) });
    if (judged.some((row) => isWrong(row, isStrict))) return 1;
    return refusal !== undefined || !isMended || judged.some(({ isOpen }) => isOpen) ? 2 : 0;
  } finally {
    stopListing();
    progress.end();
    await service.close();
  }
}

/** Throws UsageError for values that do not fit. */
function requireFit({ forged, method, skip = [], ...values }: Values): void {
  if ((values.break === undefined) !== (values.mend === undefined)) {
    throw new UsageError('Expected --break and --mend, or neither.');
  }
  if (forged !== undefined) requireUrl('--forged', forged, values['allow-other-hosts'] === true);
  if (method !== undefined && !['POST', 'PUT'].includes(method)) {
    throw new UsageError('Expected --method to be POST or PUT.');
  }
  const names = rows.map(({ name }) => name).slice(1);
  const unknown = skip.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const meant = didYouMean(unknown, names);
  throw new UsageError(
    `Expected --skip to be one of ${names.join(', ')}.${meant === undefined ? '' : ` Did you mean \`${meant}\`?`}`,
  );
}

function toMs(name: string, value: string | undefined, { usual, least }: Record<'usual' | 'least', number>): number {
  const seconds = toNumber(name, value) ?? usual;
  if (seconds < least) throw new UsageError(`Expected ${name} to be a number of seconds from ${least} on.`);
  return 1_000 * seconds;
}

async function findCallbackUrl(values: Values): Promise<Endpoint> {
  const { to } = values;
  const file = to === undefined ? findConfigFile(values.config) : undefined;
  const endpoint = await findEndpoint('--to', to, file, values);
  if (endpoint.callbackUrl !== undefined) return endpoint;
  throw new UsageError(missingUrl);
}

function toStageOptions(values: Values, { traits }: RunningService['service'], progress: Progress): StageOptions {
  const { prepare, forged: forgedUrl, method, 'real-time': isRealTime = false } = values;
  const settleMs = toMs('--settle', values.settle, { usual: 10, least: 0 });
  const usual = (traits.patienceMs ?? 30_000) / 1_000;
  const patienceMs = toMs('--patience', values.patience, { usual, least: 0.1 });
  const say = progress.say.bind(progress);
  return { prepare, forgedUrl, method, isRealTime, patienceMs, settleMs, say };
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Prints what may be booked when a signal ends the check. Returns what undoes that. */
function listOnSignal({ ids }: Stage, progress: Progress): () => void {
  const list = (): void => {
    progress.end();
    process.stderr.write(`Ended. These payouts may be booked: ${ids.join(' ') || 'none'}\n`);
    // `Breakage` ends the process when its command has ended.
    if (process.listenerCount('SIGHUP') < 2) process.exit(2);
  };
  for (const signal of signals) process.on(signal, list);
  return () => {
    for (const signal of signals) process.off(signal, list);
  };
}

interface Parts {
  readonly stage: Stage;
  readonly books: Books | undefined;
  readonly values: Values;
  readonly service: RunningService;
  readonly progress: Progress;
}

interface Outcome {
  readonly judged: readonly Judged[];
  /** Why nothing could be seen, if the endpoint acknowledges nothing. */
  readonly refusal?: Refusal;
  readonly isMended: boolean;
}

/** A row, with what is played, or why nothing is. */
interface Planned {
  readonly row: Row;
  readonly plays: readonly Play[];
  readonly gap: string | undefined;
}

function planAll({ stage, values }: Parts): Planned[] {
  const { skip = [] } = values;
  const all = rows.map((row): Planned => {
    const plays = row.toPlays(stage);
    const gap = skip.includes(row.name) ? 'It was skipped.' : findGap(row, plays, stage.gaps);
    return { row, plays: gap === undefined ? plays : [], gap };
  });
  // What its document excludes would only make the table longer.
  const { isDocumented } = stage.service.traits;
  return isDocumented === true ? all.filter(({ row, gap }) => gap === undefined || skip.includes(row.name)) : all;
}

/** Plays every case. The one that breaks the app is the last, so that what follows from it disturbs no other. */
async function playAll(parts: Parts): Promise<Outcome> {
  const { stage, books, values, progress } = parts;
  const planned = planAll(parts);
  reportPlan(listBookings(planned.flatMap(({ plays }) => plays)), values.json === true);
  progress.expect(planned.length + (values.break === undefined ? 0 : 1));
  await books?.requireEmpty(stage.service.announce('SUCCESS', stage.service.toFreshIds('check')));
  const played: Played[] = [];
  for (const { row, plays, gap } of planned) {
    const isOver = played.some(({ beside }) => beside.isOver === true);
    if (gap !== undefined || isOver) {
      played.push({ row, plays: [], beside: { unseen: gap ?? 'Your app had ended before.' } });
      continue;
    }
    progress.begin(row.name);
    const own = await playRow(stage, row, plays, books);
    if (played.length > 0) {
      played.push({ ...own, beside: { ...own.beside, ...(await stage.findDamage()) } });
      continue;
    }
    const refusal = findRefusal(parts, own);
    if (refusal !== undefined) return refuse(parts, own, planned, refusal);
    played.push({ ...own, beside: { ...own.beside, note: await awaitFirst(own, books) } });
  }
  const { last, isMended } = played.some(({ beside }) => beside.isOver === true) ? notBroken : await playBroken(parts);
  return { judged: await judgeAll(stage, [...played, ...last], books), isMended };
}

const notBroken = { last: [], isMended: true } as const;

/** Nothing was acknowledged: no row shows anything, unless the documents of the service say how long it waits. */
async function refuse({ stage }: Parts, own: Played, planned: readonly Planned[], refusal: Refusal): Promise<Outcome> {
  const last = own.plays.at(-1)?.sent.at(-1)?.responses.at(-1);
  const isLate = last !== undefined && isSilent(last) && stage.service.traits.patienceMs !== undefined;
  const beside = isLate ? { wrong: `The service waits no longer. ${refusal.advice}` } : { open: refusal.advice };
  const others = [...planned.slice(1).map(({ row }) => row), breaking];
  // It is explained, and not judged.
  const plays = own.plays.map((play) => ({ ...play, sent: play.sent.map(toUnjudged) }));
  const all = [{ ...own, plays, beside }, ...others.map((row): Played => ({ row, plays: [], beside: { unseen: '' } }))];
  return { judged: await judgeAll(stage, all, undefined), refusal, isMended: true };
}

/** Returns why nothing can be seen after the first callback; `undefined` if it was acknowledged. */
function findRefusal({ stage, values, service }: Parts, { plays }: Played): Refusal | undefined {
  const responses = plays.flatMap(({ sent }) => sent.flatMap((each) => each.responses));
  const last = responses.at(-1);
  if (last === undefined || responses.some(isAcknowledgement)) return undefined;
  const { port, prepare } = values;
  const [keyRefusal, serviceUrl] = [service.findKeyRefusal(), service.url];
  const { isSigned } = stage.service;
  return explainRefusal(last, { port, prepare, keyRefusal, serviceUrl, isSigned });
}

/** Waits for the first booking. Resolves with a note if it was missing when it was acknowledged. */
async function awaitFirst({ plays: [first] }: Played, books: Books | undefined): Promise<string | undefined> {
  return first === undefined || (await books?.awaitFirst(first.transfer)) !== false ? undefined : bookedLater;
}

async function playBroken({ stage, books, values, progress }: Parts) {
  if (values.break === undefined || values.mend === undefined) return notBroken;
  progress.begin(breaking.name);
  stage.beginRow();
  const breakage = new Breakage({ break: values.break, mend: values.mend });
  const { played, isMended } = await failOnce(stage, breakage, books);
  return { last: [played], isMended };
}

const bookedLater =
  'Note: it was acknowledged before it was booked. Without a durable queue, what fails or crashes in between is lost.';

/** What no row shows: a table without it would be taken for a proof. */
function findUnseen(values: Values, books: Books | undefined, judged: readonly Judged[]): string[] {
  return [
    ...(books === undefined ? ['how often a payout is booked (--count)'] : []),
    ...(books?.usesStatus === false ? ['whether a failed payout is booked as a failure ($STATUS in --count)'] : []),
    ...(values.break === undefined ? [withoutBreak] : []),
    ...(judged.every(({ row }) => row.name !== 'forged') ? ['whether a forged callback is believed (--forged)'] : []),
    'what a second process does, or a crash, or the end of a dedupe that lives shorter than the service retries',
  ];
}

const withoutBreak =
  'what it does when it cannot book (--break, --mend): an id that is remembered first is acknowledged then, and lost';
