import {
  readTransfers,
  reconcileTransfers,
  type Reconciled,
  type ReconciliationReport,
  type TransferClient,
  type TransferReading,
} from '../client/index.js';
import type { TransferCallbackReceiver } from '../node.js';
import { appHelp, appOptions, environmentHelp, findApp, requireClient } from './app.js';
import type { App } from './environment.js';
import { allowPositionals, flag, parseArguments, readIds, UsageError } from './arguments.js';
import { fit, jsonLine, paint, print, printable, width, type Style } from './terminal.js';

export const help = `Usage: transfer-callbacks reconcile [options] < ids

Reads the ids or externalIds of transfers from standard input, one per line,
asks the service for each, and prints which are final, open or unknown. It only
reads, unless --handle is given. On a terminal it prints a line for each and a
progress line; elsewhere one JSON object per line.

It asks for one transfer at a time, waits when the service wants that for up to
a minute, and ends after 10 failures in a row. Exit code 0 if every transfer is
final or open, 1 if one is unknown or could not be read or handled, 2 if the
arguments or the environment are wrong.

  --handle                   Give the final transfers to the \`receiver\` of your
                             app: its handler runs for those that were not
                             handled. For cron
${appHelp}
  --json                     Print JSON on a terminal, too

${environmentHelp}
`;

type Found = TransferReading | Reconciled;
type Show = (found: Found) => void;

/** Reads every id of standard input back from the service, and has the app handle what is final if it shall. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, { ...appOptions, handle: flag, json: flag });
  allowPositionals(positionals, 0);
  const app = await findApp(values.config);
  const client = requireClient(app);
  const receiver = values.handle === true ? requireReceiver(app) : undefined;
  const ids = await readIds();
  const json = values.json === true || !process.stdout.isTTY;
  const counts = new Map<string, number>();
  const onProgress = printer(ids.length, counts, json);

  const { stopped } =
    receiver === undefined
      ? await readTransfers({ client, ids, concurrency: 1, onProgress })
      : await handle(client, receiver, ids, onProgress);
  showProgress('');
  const notRead = ids.length - total(counts);
  if (json) print(jsonLine({ type: 'summary', ...Object.fromEntries(counts), notRead, stopped }));
  else print(`${stopped === undefined ? '' : `${paint('red', 'Stopped:')} ${stopped}\n`}${inWords(counts, notRead)}\n`);
  return (counts.get('unknown') ?? 0) + (counts.get('failed') ?? 0) + notRead === 0 ? 0 : 1;
}

function requireReceiver({ receiver }: App): TransferCallbackReceiver {
  if (receiver !== undefined) return receiver;
  throw new UsageError('Expected --handle with a receiver in transfer-callbacks.config.js.');
}

async function handle(
  client: TransferClient,
  receiver: TransferCallbackReceiver,
  ids: readonly string[],
  onProgress: Show,
): Promise<ReconciliationReport> {
  // Their ages are not known, so that none is left to its callback.
  const pending = ids.map((id) => ({ id, createdAt: 0 }));
  try {
    return await reconcileTransfers({ client, receiver, pending, minAgeMs: 0, concurrency: 1, onProgress });
  } finally {
    await receiver.close();
  }
}

/** Returns what prints and counts each transfer. */
function printer(all: number, counts: Map<string, number>, json: boolean): Show {
  return (found) => {
    const state = found.result;
    // The pass ended first: counted as not read.
    if (state === 'unread' || ('reason' in found && found.reason === 'not_read')) return;
    counts.set(state, (counts.get(state) ?? 0) + 1);
    showProgress('');
    print(json ? jsonLine({ type: 'transfer', asked: found.id, state, ...toJson(found) }) : row(found));
    const done = total(counts);
    if (done < all) showProgress(`${done} of ${all}: ${inWords(counts, all - done)}`);
  };
}

/** Only what identifies a transfer: the rest may be personal, such as a wallet number. */
function toJson(found: Found): object {
  if ('error' in found) {
    const { code, message, status } = found.error;
    return { code, message, httpStatus: status };
  }
  if (!('transaction' in found)) return {};
  const { id, externalId, status, amount, currency, timestamp } = found.transaction;
  return { id, externalId, status, amount, currency, timestamp };
}

const colours: Readonly<Record<Found['result'], Style>> = {
  final: 'green',
  processed: 'green',
  duplicate: 'green',
  open: 'cyan',
  pending: 'cyan',
  unknown: 'yellow',
  unread: 'yellow',
  failed: 'red',
};

function row(found: Found): string {
  const details = [found.id];
  if (found.result === 'failed') details.push(found.error.message);
  if ('transaction' in found) {
    const { status, amount, currency, timestamp } = found.transaction;
    // Only the status is sure to be there: the shape of the response is not documented (service §4.2).
    details.push(status, [amount, currency].join(' '), typeof timestamp === 'string' ? timestamp : '');
  }
  const text = fit(printable(details.join('  ').trimEnd()), width() - 11);
  return `${paint(colours[found.result], found.result.padEnd(9))}  ${text}\n`;
}

const total = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, each) => sum + each, 0);

function inWords(counts: ReadonlyMap<string, number>, notRead: number): string {
  const parts = [...counts].map(([state, count]) => `${count} ${state}`);
  return [...parts, ...(notRead === 0 ? [] : [`${notRead} not read`])].join(', ');
}

/** Replaces the progress line, on standard error: standard output may be a file. */
function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${fit(line, width() - 1)}`);
}
