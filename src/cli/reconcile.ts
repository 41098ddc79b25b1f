import { reconcileTransfers, type PendingTransfer, type Reconciled, type ReconciliationReport } from '../client.js';
import { appHelp, appOptions, connectApp, type ConnectedApp } from './app.js';
import { describeGiven } from '../lib/checks.js';
import { allowPositionals, flag, parseArguments, readIds, UsageError, type GivenTransfer } from './arguments.js';
import { fit, jsonLine, paint, print, printable, stdout, width, type Style } from './terminal.js';

export const help = `Usage: transfer-callbacks reconcile [options] < ids

Reads the ids or externalIds of open transfers from standard input, one per
line, asks the service for each, and gives those that are final to the receiver
of your app. Its handler runs in this process, for those that were not handled
before. A tab and the time at which the transfer was created may follow an id.
For cron, and for one transfer that was missed:

  echo payout-8841 | npx --no transfer-callbacks reconcile

${appHelp}
  --json                     Print JSON on a terminal, too

On a terminal it prints a line for each and a progress line; elsewhere one JSON
object per line. It asks for one transfer at a time, waits when the service
wants that for up to a minute, and ends after 10 failures in a row, or when the
running handler has finished after SIGINT, SIGTERM or SIGHUP.

Exit codes:
  0  Every transfer is handled or open, or there is none.
  1  A transfer is unknown, could not be read or handled, or was not reached.
     An open transfer is older than a day, or its status reads as final.
     A success could not be recorded, or a function of \`afterCommit\` still runs.
     The app has ended the process.
  2  The arguments or the configuration are wrong.
`;

/** Reads every id of standard input back from the service, and has the app handle what is final. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, { ...appOptions, json: flag });
  allowPositionals(positionals, 0);
  const app = await connectApp(values.config, 'reconcileTransfers');
  const given = await readIds();
  const ids = given.map(({ id }) => id);
  const other = app.receiver.options.onOther && ids.find((id) => /^other:[^:]+:./.test(id));
  if (other !== undefined) {
    throw new UsageError(
      `Expected ids of transfers, got ${other}, an event of \`onOther\`. If it is a transfer, give its externalId.`,
    );
  }
  const json = values.json === true || !stdout.isTTY;
  const counts = new Map<string, number>();
  const { stopped, advice, unfinished } = await reconcile(given.map(toPending), app, printer(ids.length, counts, json));
  showProgress('');
  const notRead = ids.length - total(counts);
  if (json) print(jsonLine({ type: 'summary', ...Object.fromEntries(counts), notRead, stopped }));
  else print(`${stopped === undefined ? '' : `${paint('red', 'Stopped:')} ${stopped}\n`}${inWords(counts, notRead)}\n`);
  if (advice !== undefined) process.stderr.write(`${advice}\n`);
  if (unfinished > 0) {
    process.stderr.write(`Not finished: ${unfinished} recordings of a success, or functions of \`afterCommit\`.\n`);
  }
  const faults = (counts.get('unknown') ?? 0) + (counts.get('failed') ?? 0) + notRead + unfinished;
  return faults === 0 && advice === undefined ? 0 : 1;
}

/**
 * Returns an item of `pending`. A transfer without a time counts as an hour old: the pass does not wait for its
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
  pending: readonly PendingTransfer[],
  { client, receiver }: ConnectedApp,
  onProgress: (reconciled: Reconciled) => void,
): Promise<Pick<ReconciliationReport, 'stopped' | 'advice'> & { readonly unfinished: number }> {
  const signal = abortOnSignal();
  const pass = reconcileTransfers({
    client,
    receiver: clearingProgress(receiver),
    pending,
    minAgeMs: 0,
    concurrency: 1,
    signal,
    onProgress,
  });
  await Promise.allSettled([pass]);
  // What is not finished ends with this process.
  const closed = (await receiver.close()) as { unfinished: number } | undefined; // One made by hand may resolve with nothing.
  const { stopped, advice } = await pass;
  return { stopped, advice, unfinished: closed?.unfinished ?? 0 };
}

/** Returns a receiver that clears the progress line before a handler runs, which may log past the streams of Node. */
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

/** Returns what prints and counts each transfer. */
function printer(all: number, counts: Map<string, number>, json: boolean): (reconciled: Reconciled) => void {
  return (reconciled) => {
    const { id, result, status } = reconciled;
    // The pass ended first: counted as not read.
    if ('reason' in reconciled && reconciled.reason === 'not_read') return;
    counts.set(result, (counts.get(result) ?? 0) + 1);
    showProgress('');
    print(json ? jsonLine({ type: 'transfer', id, result, status, ...toJson(reconciled) }) : row(reconciled));
    const done = total(counts);
    if (done < all) showProgress(`${done} of ${all}: ${inWords(counts, all - done)}`);
  };
}

/** The error without its cause, which may have data of the transfer. */
function toJson(reconciled: Reconciled): object {
  if (!('error' in reconciled)) return {};
  const { code, message, status } = reconciled.error;
  return { code, message, httpStatus: status };
}

const colours: Readonly<Record<Reconciled['result'], Style>> = {
  processed: 'green',
  duplicate: 'green',
  pending: 'cyan',
  unknown: 'yellow',
  failed: 'red',
};

function row(reconciled: Reconciled): string {
  const { id, result, status } = reconciled;
  const text = [id, status, ...(result === 'failed' ? [reconciled.error.message] : [])].filter(Boolean).join('  ');
  return `${paint(colours[result], result.padEnd(9))}  ${fit(printable(text), width() - 11)}\n`;
}

const total = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, each) => sum + each, 0);

function inWords(counts: ReadonlyMap<string, number>, notRead: number): string {
  const parts = [...counts].map(([result, count]) => `${count} ${result}`);
  return [...parts, ...(notRead === 0 ? [] : [`${notRead} not read`])].join(', ') || 'No ids on standard input';
}

/**
 * Replaces the progress line on standard error, because standard output may be a file. The cursor returns to the
 * start of the line, so that a log line of the app begins there.
 */
function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${line === '' ? '' : `${fit(line, width() - 1)}\r`}`);
}
