import { setTimeout } from 'node:timers/promises';
import { TransferClientError, type Transaction, type TransferClient } from '../client/index.js';
import { allowPositionals, flag, parseArguments } from './arguments.js';
import { requireClient } from './service.js';
import { fit, jsonLine, paint, print, printable, width } from './terminal.js';

export const help = `Usage: transfer-callbacks reconcile [options] < ids

Reads the ids or externalIds of transfers from standard input, one per line,
asks the service for each, and prints which are final, open or unknown. It only
reads: nothing is created, and no handler is run. On a terminal it prints a line
for each and a progress line; elsewhere one JSON object per line.

It asks for one transfer at a time, waits when the service wants that for up to
a minute, and ends after 5 failures in a row. Exit code 0 if every transfer is
final or open, 1 if one is unknown or could not be read, 2 if the arguments or
the environment are wrong.

  --json                     Print JSON on a terminal, too

Environment:
  TRANSFER_SERVICE_URL       Where the service is
  TRANSFER_API_KEY           The merchant's key
  TRANSFER_API_SECRET        Its secret
`;

const failuresInARow = 5;
const longestPauseMs = 60_000;

type Finding =
  | { readonly state: 'final' | 'open'; readonly transaction: Transaction }
  | { readonly state: 'unknown' }
  | { readonly state: 'error'; readonly error: TransferClientError };

/** How many transfers were found in each state; `notRead` are those after the end of a run that was stopped. */
type Summary = Record<Finding['state'] | 'notRead', number>;

/** Reads every id of standard input back from the service. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, { json: flag });
  allowPositionals(positionals, 0);
  const client = requireClient();
  const json = values.json === true || !process.stdout.isTTY;
  if (process.stdin.isTTY) process.stderr.write('Ids, one per line, until Ctrl+D:\n');
  const ids = await readIds();

  const summary: Summary = { final: 0, open: 0, unknown: 0, error: 0, notRead: ids.length };
  const stopped = await readAll(client, ids, (id, finding) => {
    summary.notRead -= 1;
    summary[finding.state] += 1;
    showProgress('');
    print(json ? jsonLine({ type: 'transfer', asked: id, ...toJson(finding) }) : row(id, finding));
    if (summary.notRead > 0) showProgress(`${ids.length - summary.notRead} of ${ids.length}: ${inWords(summary)}`);
  });
  showProgress('');
  if (json) print(jsonLine({ type: 'summary', ...summary, stopped }));
  else print(`${stopped === undefined ? '' : `${paint('red', 'Stopped.')} ${stopped}\n`}${inWords(summary)}\n`);
  return summary.unknown + summary.error + summary.notRead === 0 ? 0 : 1;
}

async function readIds(): Promise<string[]> {
  let input = '';
  for await (const chunk of process.stdin.setEncoding('utf8') as AsyncIterable<string>) input += chunk;
  const lines = input.split('\n').map((line) => line.trim());
  return [...new Set(lines.filter((line) => line !== ''))];
}

/** Asks for one transfer after another. Resolves with the reason if it ended early. */
async function readAll(
  client: TransferClient,
  ids: readonly string[],
  show: (id: string, finding: Finding) => void,
): Promise<string | undefined> {
  let failures = 0;
  for (const [index, id] of ids.entries()) {
    const finding = await read(client, id);
    show(id, finding);
    if (index + 1 === ids.length) return undefined;
    if (finding.state !== 'error') failures = 0;
    else if (finding.error.code !== 'INVALID_ID') {
      // An id that cannot be queried is no failure of the service.
      failures += 1;
      const { message, retryAfterMs = 0 } = finding.error;
      if (failures === failuresInARow) return `${failures} failures in a row. ${message}`;
      if (retryAfterMs > longestPauseMs) return `The service asks to wait for ${Math.ceil(retryAfterMs / 1_000)} s.`;
      await setTimeout(retryAfterMs);
    }
  }
  return undefined;
}

async function read(client: TransferClient, id: string): Promise<Finding> {
  try {
    const transaction = await client.getTransaction(id);
    // No other status is documented (service §3).
    const isFinal = transaction.status === 'SUCCESS' || transaction.status === 'FAILED';
    return { state: isFinal ? 'final' : 'open', transaction };
  } catch (error) {
    if (!(error instanceof TransferClientError)) throw error;
    return error.status === 404 ? { state: 'unknown' } : { state: 'error', error };
  }
}

/** Only what identifies a transfer: the rest may be personal, such as a wallet number. */
function toJson(finding: Finding): object {
  if (finding.state === 'unknown') return { state: finding.state };
  if (finding.state === 'error') {
    const { code, message, status } = finding.error;
    return { state: finding.state, code, message, httpStatus: status };
  }
  const { id, externalId, status, amount, currency, timestamp } = finding.transaction;
  return { state: finding.state, id, externalId, status, amount, currency, timestamp };
}

const colours = { final: 'green', open: 'cyan', unknown: 'yellow', error: 'red' } as const;

function row(asked: string, finding: Finding): string {
  const { state } = finding;
  const details = [asked];
  if (finding.state === 'error') details.push(finding.error.message);
  if ('transaction' in finding) {
    const { status, amount, currency, timestamp } = finding.transaction;
    // Only the status is sure to be there: the shape of the response is not documented (service §4.2).
    details.push(status, [amount, currency].join(' '), typeof timestamp === 'string' ? timestamp : '');
  }
  return `${paint(colours[state], state.padEnd(7))}  ${fit(printable(details.join('  ').trimEnd()), width() - 9)}\n`;
}

function inWords({ final, open, unknown, error, notRead }: Summary): string {
  const rest = notRead === 0 ? '' : `, ${notRead} not read`;
  return `${final} final, ${open} open, ${unknown} unknown, ${error} failed${rest}`;
}

/** Replaces the progress line, on standard error: standard output may be a file. */
function showProgress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${fit(line, width() - 1)}`);
}
