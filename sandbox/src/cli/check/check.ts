import { isAcknowledgement, isSilent } from '../../attempt/attempt.js';
import { allowPositionals, parseArguments, toNumber, UsageError } from '../../../../src/cli/arguments.js';
import { findConfigFile } from '../../../../src/cli/config-file.js';
import { didYouMean } from '../../../../src/lib/text.js';
import { findEndpoint, missingUrl, requireUrl, type Endpoint } from '../endpoint-options.js';
import { Books } from './books.js';
import { Breakage } from './commands.js';
import { startDocumented } from './documented.js';
import { help, options as known } from './help.js';
import { judgeAll, type Judged } from './judge.js';
import { fileOptions, loadService, requireServiceValue, type LoadedService } from './load-service.js';
import { playRow, toUnjudged } from './play.js';
import type { Played } from './played.js';
import { Progress } from './progress.js';
import { explainRefusal } from './refusal.js';
import { report, reportOrigin, reportPlan } from './report.js';
import { findGap, listBookings, rows, withoutStatus, type Play, type Row } from './rows.js';
import { Stage, type StageOptions } from './stage.js';

export { help };

type Values = ReturnType<typeof parseArguments<typeof known>>['values'];

/** Plays all cases, and judges the endpoint. */
export async function run(args: readonly string[]): Promise<number> {
  requireServiceValue(args);
  const { values, positionals } = parseArguments(args, known);
  allowPositionals(positionals, 0, '--to');
  requireFit(values);
  const isJson = values.json === true;
  const endpoint = await findCallbackUrl(values);
  const source = await findService(values, endpoint);
  if (source.origin !== undefined) reportOrigin(source.origin, isJson);
  const progress = new Progress();
  const options = toStageOptions(values, source.service.traits.patienceMs, progress);
  const stage = await Stage.open(source.service, endpoint, options);
  const books = values.count === undefined ? undefined : new Books(values.count, options.settleMs);
  const stopListing = listOnSignal(stage, progress);
  try {
    const { judged, refusal } = await playAll({ stage, books, values, source, progress });
    progress.end();
    report(judged, { isJson, refusal, advice: source.adviseKey?.(), unseen: findUnseen(values, books, judged) });
    if (judged.some(({ verdict }) => verdict === 'wrong')) return 1;
    return options.breakage?.isMended === false || judged.some(({ isOpen }) => isOpen) ? 2 : 0;
  } finally {
    stopListing();
    progress.end();
    await source.close?.();
  }
}

/** Throws UsageError for values that do not fit. */
function requireFit({ forged, method, skip = [], service, port, ...values }: Values): void {
  if ((values.break === undefined) !== (values.mend === undefined)) {
    throw new UsageError('Expected --break and --mend, or neither.');
  }
  const given = fileOptions.find((name) => values[name] !== undefined);
  if (service === undefined && given !== undefined) throw new UsageError(`Expected --service beside --${given}.`);
  if (service !== undefined && port !== undefined) {
    throw new UsageError('Expected --port or --service, not both: no query of it is answered.');
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

/** A service, which can be asked if it is the documented one. */
type Source = LoadedService & Partial<Awaited<ReturnType<typeof startDocumented>>>;

/** Starts the documented service, or loads another one. Throws UsageError. */
async function findService({ service, port, ...files }: Values, { callbackUrl }: Endpoint): Promise<Source> {
  if (service === undefined) return startDocumented(toNumber('--port', port));
  return loadService({ ...files, service }, typeof callbackUrl === 'string' ? callbackUrl : undefined);
}

function toStageOptions(values: Values, usualMs = 30_000, progress: Progress): StageOptions {
  const { prepare, forged: forgedUrl, method, 'real-time': isRealTime = false } = values;
  const settleMs = toMs('--settle', values.settle, { usual: 10, least: 0 });
  const patienceMs = toMs('--patience', values.patience, { usual: usualMs / 1_000, least: 0.1 });
  const breakage = values.break && values.mend ? new Breakage(values.break, values.mend) : undefined;
  const say = progress.say.bind(progress);
  return { prepare, forgedUrl, method, isRealTime, patienceMs, settleMs, breakage, say };
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Prints what may be booked when a signal ends the check. Returns what undoes that. */
function listOnSignal({ ids, options: { breakage } }: Stage, progress: Progress): () => void {
  const list = (): void => {
    progress.end();
    process.stderr.write(`Ended. These payouts may be booked: ${ids.join(' ') || 'none'}\n`);
    if (breakage === undefined) process.exit(2);
    else void breakage.idle().then(() => process.exit(2));
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
  readonly source: Source;
  readonly progress: Progress;
}

/** A row, with what is played, or why nothing is. */
interface Planned {
  readonly row: Row;
  readonly plays: readonly Play[];
  readonly gap: string | undefined;
}

function planAll({ stage, values: { skip = [] } }: Parts): Planned[] {
  const all = rows.map((row): Planned => {
    const plays = row.toPlays(stage);
    const gap = skip.includes(row.name) ? 'It was skipped.' : findGap(row, plays, stage.gaps);
    return { row, plays: gap === undefined ? plays : [], gap };
  });
  return all.filter(({ gap }) => gap !== '');
}

/** Plays every case. Nothing is seen if nothing of the first one is acknowledged. */
async function playAll(parts: Parts): Promise<{ readonly judged: Judged[]; readonly refusal: string | undefined }> {
  const { stage, books, values, progress } = parts;
  const planned = planAll(parts);
  reportPlan(listBookings(planned.flatMap(({ plays }) => plays)), values.json === true);
  await books?.requireEmpty(stage.service.invent('success'));
  let refusal: string | undefined;
  const played: Played[] = [];
  for (const { row, plays, gap } of planned) {
    const unseen = gap ?? (stage.isOver ? 'Your app had ended before.' : refusal && '');
    if (unseen !== undefined) {
      played.push({ row, plays: [], findings: [['unseen', unseen]] });
      continue;
    }
    progress.begin(row.name, played.length + 1, planned.length);
    const counted = books?.usesStatus === false ? plays.map(withoutStatus) : plays;
    const own = await playRow(stage, row, counted, books);
    if (played.length > 0) {
      played.push({ ...own, findings: [...own.findings, ...(await stage.findDamage())] });
      continue;
    }
    refusal = findRefusal(parts, own);
    played.push(refusal === undefined ? await awaitFirst(own, books) : toRefused(stage, own, refusal));
  }
  const judged = await judgeAll(stage, played, refusal === undefined ? books : undefined);
  // Under --strict what no document demands is wrong.
  const toStrict = (each: Judged): Judged => (each.verdict === 'less strict' ? { ...each, verdict: 'wrong' } : each);
  return { judged: values.strict === true ? judged.map(toStrict) : judged, refusal };
}

/** Explains the first row, and does not judge it, unless the documents of the service say how long it waits. */
function toRefused({ service }: Stage, own: Played, advice: string): Played {
  const last = own.plays.at(-1)?.sent.at(-1)?.responses.at(-1);
  const isLate = last !== undefined && isSilent(last) && service.traits.patienceMs !== undefined;
  const plays = own.plays.map((play) => ({ ...play, sent: play.sent.map(toUnjudged) }));
  const because = isLate ? (['wrong', `The service waits no longer. ${advice}`] as const) : (['open', advice] as const);
  return { ...own, plays, findings: [because] };
}

/** Returns why nothing can be seen after the first callback; `undefined` if it was acknowledged. */
function findRefusal({ stage, values, source }: Parts, { plays }: Played): string | undefined {
  const responses = plays.flatMap(({ sent }) => sent.flatMap((each) => each.responses));
  const last = responses.at(-1);
  if (last === undefined || responses.some(isAcknowledgement)) return undefined;
  const { port, prepare } = values;
  const isSigned = stage.service.signer.canSign;
  return source.adviseKey?.() ?? explainRefusal(last, { port, prepare, serviceUrl: source.url, isSigned });
}

/** Waits for the first booking, and notes if it was missing when it was acknowledged. */
async function awaitFirst(own: Played, books: Books | undefined): Promise<Played> {
  const [first] = own.plays;
  if (first === undefined || (await books?.awaitFirst(first.transfer)) !== false) return own;
  return { ...own, findings: [['note', bookedLater]] };
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
