import { reconcileTransfers, type PendingTransfer, type Reconciled, type ReconciliationReport } from '../client.js';
import { appHelp, appOptions, connectApp, type ConnectedApp } from './app.js';
import { describeGiven } from '../lib/checks.js';
import { allowPositionals, flag, parseArguments, readIds, UsageError, type GivenTransfer } from './arguments.js';
import { fit, jsonLine, paint, print, printable, stdout, width, type Style } from './terminal.js';

export const help = `Usage: transfer-callbacks reconcile [options] < ids
       transfer-callbacks reconcile --lists [options]

Reads the ids or externalIds of open transfers from standard input, one per
line, asks the service for each, and gives those that are final to the receiver
of your app. Its handler runs in this process, for those that were not handled
before. A tab and the time at which the transfer was created may follow an id.
For cron, and for one transfer that was missed:

  echo payout-8841 | npx --no transfer-callbacks reconcile

With --lists it reads no ids, and takes what the configuration exports as
\`pending\`, \`paid\` or both: iterables, or functions that return one. \`paid\`
has the transfers that your books have as paid. Of these, it gives only those
to the receiver that the service has reversed since.

${appHelp}
  --lists                    Take the lists of the configuration, not ids
  --json                     Print JSON on a terminal, too

On a terminal it prints a line for each and a progress line; elsewhere one JSON
object per line. It prints none for a paid transfer that is unchanged. It asks
for one transfer at a time, waits when the service wants that for up to a
minute, and ends after 10 failures in a row, or when the running handler has
finished after SIGINT, SIGTERM or SIGHUP.

Exit codes:
  0  Every transfer is handled or open, or there is none.
  1  A transfer is unknown, could not be read or handled, was not reached, or
     was created in the future.
     The service reports a transfer as failed that your books have as paid.
     An open transfer is older than a day, or its status reads as final.
     A success could not be recorded, or a function of \`afterCommit\` still runs.
     The app has ended the process.
  2  The arguments or the configuration are wrong.
`;

/** What the command reconciles. */
interface Work extends Pick<Parameters<typeof reconcileTransfers>[0], 'pending' | 'paid' | 'minAgeMs'> {
  /** How many ids were given. `undefined` for lists, whose end is known when it is reached. */
  readonly count?: number | undefined;
}

/** Counts the results by list. A transfer that was not read has none. */
type Counts = Readonly<Record<'pending' | 'paid', Map<string, number>>>;

/** Reads every transfer back from the service, and has the app handle what is final. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, { ...appOptions, lists: flag, json: flag });
  allowPositionals(positionals, 0);
  const app = await connectApp(values.config, 'reconcileTransfers');
  const work = values.lists === true ? await openLists(app) : await readPending(app);
  const json = values.json === true || !stdout.isTTY;
  const counts: Counts = { pending: new Map(), paid: new Map() };
  const { report, unfinished } = await reconcile(work, app, printer(work.count, counts, json));
  showProgress('');
  const notRead = work.count === undefined ? undefined : work.count - total(counts.pending);
  print(json ? toSummary(report, counts, notRead) : describe(report, counts, notRead));
  const advice = new Set([report.advice, report.paid?.advice].filter((each) => each !== undefined));
  for (const each of advice) process.stderr.write(`${each}\n`);
  if (unfinished > 0) {
    process.stderr.write(`Not finished: ${unfinished} recordings of a success, or functions of \`afterCommit\`.\n`);
  }
  const hasFaults = [report, report.paid].some((each) => each !== undefined && each.problems.length > 0);
  const isWhole = notRead === undefined ? findStop(report) === undefined : notRead === 0;
  return !hasFaults && isWhole && unfinished === 0 && advice.size === 0 ? 0 : 1;
}

/** Returns the transfers of standard input. */
async function readPending({ receiver }: ConnectedApp): Promise<Work> {
  const given = await readIds();
  const other = receiver.options.onOther && given.find(({ id }) => /^other:[^:]+:./.test(id));
  if (other !== undefined) {
    throw new UsageError(
      `Expected ids of transfers, got ${other.id}, an event of \`onOther\`. If it is a transfer, give its externalId.`,
    );
  }
  // People, and queries for open payouts, choose what is old enough.
  return { pending: given.map(toPending), minAgeMs: 0, count: given.length };
}

/** Returns the lists that the app exports. */
async function openLists({ pending, paid }: ConnectedApp): Promise<Work> {
  if (pending === undefined && paid === undefined) {
    throw new UsageError('Expected the configuration to export `pending` or `paid` for --lists.');
  }
  // A function that returns nothing must not look like a list that was left out.
  const open = async (list: unknown): Promise<unknown> =>
    typeof list === 'function' ? ((await (list as () => unknown)()) ?? null) : list;
  return { pending: await open(pending), paid: await open(paid) } as Work;
}

/**
 * Returns an item of `pending`. A transfer without a time counts as an hour old: the run does not wait for its
 * callback, and does not report it as old.
 */
function toPending({ id, createdAt }: GivenTransfer): PendingTransfer {
  const at = createdAt === undefined ? Date.now() - unknownAgeMs : Date.parse(createdAt);
  if (!Number.isNaN(at)) return { id, createdAt: at };
  throw new UsageError(`Expected a time after the tab, such as 2026-01-15T10:30:00Z, got ${describeGiven(createdAt)}.`);
}

/**
 * The age of a transfer without a time, in milliseconds. If the clock is set back by less, no creation is in the
 * future.
 */
const unknownAgeMs = 3_600_000;

async function reconcile(
  { pending, paid, minAgeMs }: Work,
  { receiver }: ConnectedApp,
  onProgress: (reconciled: Reconciled) => void,
): Promise<{ readonly report: ReconciliationReport; readonly unfinished: number }> {
  const signal = abortOnSignal();
  const reconciling = reconcileTransfers({
    ...{ receiver: clearingProgress(receiver), pending, paid, minAgeMs, signal, onProgress },
    concurrency: 1,
  });
  await Promise.allSettled([reconciling]);
  // What is not finished ends with this process.
  const closed = (await receiver.close()) as { unfinished: number } | undefined; // One made by hand may resolve with nothing.
  return { report: await reconciling, unfinished: closed?.unfinished ?? 0 };
}

/** Returns why a list was not read to its end, if one was not. */
const findStop = ({ stopped, paid }: ReconciliationReport): string | undefined => stopped ?? paid?.stopped;

function toSummary(report: ReconciliationReport, counts: Counts, notRead: number | undefined): string {
  const paid = report.paid && { ...Object.fromEntries(counts.paid), stopped: report.paid.stopped };
  return jsonLine({ type: 'summary', ...Object.fromEntries(counts.pending), notRead, stopped: report.stopped, paid });
}

/** Describes a run in lines for people. */
function describe(report: ReconciliationReport, counts: Counts, notRead: number | undefined): string {
  const stopped = findStop(report);
  const none = notRead === undefined ? 'No transfers' : 'No ids on standard input';
  const isOnlyPaid = report.paid !== undefined && counts.pending.size === 0;
  return [
    ...(stopped === undefined ? [] : [`${paint('red', 'Stopped:')} ${stopped}`]),
    ...(isOnlyPaid ? [] : [inWords(counts.pending, notRead ?? 0) || none]),
    ...(report.paid === undefined ? [] : [`Paid: ${inWords(counts.paid, 0) || 'none read'}`]),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

/**
 * Returns a receiver that clears the progress line before a handler runs, which may log past the streams of Node. A
 * thread of pino may still write its line after the next progress line.
 */
function clearingProgress(receiver: ConnectedApp['receiver']): Pick<ConnectedApp['receiver'], 'receive' | 'options'> {
  return {
    options: receiver.options,
    receive(callback, options) {
      showProgress('');
      return receiver.receive(callback, options);
    },
  };
}

/** npx repeats the SIGINT of Ctrl+C, so that two within this time are one. In milliseconds. */
const repeatedMs = 1_000;

/** Returns a signal that SIGINT, SIGTERM or SIGHUP aborts. A second one ends the process. */
function abortOnSignal(): AbortSignal {
  const controller = new AbortController();
  let firstAt = Infinity;
  function onSignal(_name: string, code: number): void {
    if (performance.now() - firstAt > repeatedMs) process.exit(128 + code);
    if (controller.signal.aborted) return;
    firstAt = performance.now();
    process.stderr.write('Ending: the running handler is waited for. Send the signal again to end immediately.\n');
    controller.abort();
  }
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal).on('SIGHUP', onSignal);
  return controller.signal;
}

/** Returns what prints and counts each transfer. `all` is the number of ids, if they were given. */
function printer(all: number | undefined, counts: Counts, json: boolean): (reconciled: Reconciled) => void {
  return (reconciled) => {
    const { id, result, status, paid } = reconciled;
    // The run ended first: counted as not read.
    if ('reason' in reconciled && reconciled.reason === 'not_read') return;
    const list = counts[paid === true ? 'paid' : 'pending'];
    list.set(result, (list.get(result) ?? 0) + 1);
    showProgress('');
    // A list of what was paid is long, and hardly any of it changes.
    if (result !== 'unchanged') {
      print(json ? jsonLine({ type: 'transfer', id, paid, result, status, ...toJson(reconciled) }) : row(reconciled));
    }
    const done = total(counts.pending);
    if (all === undefined) showProgress(`${done + total(counts.paid)}: ${inWords(list, 0)}`);
    else if (done < all) showProgress(`${done} of ${all}: ${inWords(counts.pending, all - done)}`);
  };
}

/** The error without its cause, which may have data of the transfer. */
function toJson(reconciled: Reconciled): object {
  if (reconciled.error === undefined) return {};
  const { code, message, status } = reconciled.error;
  return { code, message, httpStatus: status };
}

const colours: Readonly<Record<Reconciled['result'], Style>> = {
  processed: 'green',
  duplicate: 'green',
  unchanged: 'green',
  pending: 'cyan',
  unknown: 'yellow',
  failed: 'red',
};

function row(reconciled: Reconciled): string {
  const { id, result, status, error } = reconciled;
  const text = [id, status, error?.message].filter(Boolean).join('  ');
  return `${paint(colours[result], result.padEnd(9))}  ${fit(printable(text), width() - 11)}\n`;
}

const total = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, each) => sum + each, 0);

function inWords(counts: ReadonlyMap<string, number>, notRead: number): string {
  const parts = [...counts].map(([result, count]) => `${count} ${result}`);
  return [...parts, ...(notRead === 0 ? [] : [`${notRead} not read`])].join(', ');
}

/**
 * Replaces the progress line on standard error, because standard output may be a file. The cursor returns to the
 * start of the line, so that a log line that follows begins there.
 */
function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line === '' ? '' : `${fit(line, width() - 1)}\r`}`);
}
