import { inspectTransfer, type Transaction, type TransferInspection } from '../client.js';
import { appHelp, appOptions, connectApp, type ConnectedApp } from './app.js';
import { allowPositionals, flag, parseArguments, readIds, UsageError } from './arguments.js';
import { inspectionLine, inspectionReport } from './inspection-report.js';
import { jsonLine, messageOf, print } from './terminal.js';

export const help = `Usage: transfer-callbacks inspect <id or externalId> [options]
       transfer-callbacks inspect [options] < ids

Tells what became of one transfer, and what to do: compares what the service
responds with what your store has recorded. It only reads. Of the ids on
standard input, one per line, it prints a line each.

${appHelp}
  --json                     Print one JSON object for each transfer

Exit codes:
  0  There is nothing to do.
  1  You should look into it. An open transfer counts if its status reads as
     final.
  2  The arguments or the configuration are wrong.
  3  Nothing can be concluded, or the app has ended the process.
For many transfers the code is 1 if one of them has 1, otherwise 3 if one has 3.
`;

/** A verdict as an exit code: 0 nothing to do, 1 look into it, 3 nothing can be concluded. */
const exitCodes: Readonly<Record<TransferInspection['verdict'], number>> = {
  open: 0,
  in_progress: 0,
  handled: 0,
  missed: 1,
  conflict: 1,
  unfounded: 1,
  unknown: 1,
  undecided: 3,
};

/** After so many transfers in a row of which nothing can be concluded, the others are not tried. */
const mostUndecided = 5;

/** How long the service may take before a line reports that it is waited for, in milliseconds. */
const patienceMs = 3_000;

/** Tells what became of one transfer, or of many. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, { ...appOptions, json: flag });
  allowPositionals(positionals, 1);
  const [id] = positionals;
  if (id === '') throw new UsageError('Expected an id: transfer-callbacks inspect <id or externalId>.');
  const app = await connectApp(values.config, 'inspectTransfer');
  const isJson = values.json === true;
  if (id === undefined) return inspectAll(app, isJson);
  const inspection = await inspect(id, app);
  print(isJson ? jsonLine(toJson(inspection)) : inspectionReport(inspection, values.config));
  return toExitCode(inspection);
}

/**
 * Returns 1 for an open transfer whose status reads as final: it is open at each query, although its payout has ended.
 */
function toExitCode({ verdict, service }: TransferInspection): number {
  return verdict === 'open' && service.seemsFinal ? 1 : exitCodes[verdict];
}

async function inspectAll(app: ConnectedApp, isJson: boolean): Promise<number> {
  const ids = await readIds();
  if (ids.length === 0) throw new UsageError('Expected ids on standard input, one per line, got none.');
  const codes = new Set<number>();
  let undecided = 0;
  for (const { id } of ids) {
    const inspection = await inspect(id, app);
    print(isJson ? jsonLine(toJson(inspection)) : inspectionLine(inspection));
    codes.add(toExitCode(inspection));
    undecided = inspection.verdict === 'undecided' ? undecided + 1 : 0;
    if (undecided === mostUndecided) {
      process.stderr.write(`Stopped after ${id}: ${inspection.meaning} ${inspection.advice}\n`);
      break;
    }
  }
  return [1, 3, 0].find((code) => codes.has(code)) ?? 0;
}

async function inspect(id: string, { receiver }: ConnectedApp): Promise<TransferInspection> {
  const notice = setTimeout(() => {
    process.stderr.write('Still waiting for the service, which is asked up to 3 times.\n');
  }, patienceMs);
  try {
    return await inspectTransfer({ id, receiver });
  } finally {
    clearTimeout(notice);
  }
}

function toJson({ service, record, ...inspection }: TransferInspection): object {
  return {
    ...inspection,
    service:
      'transaction' in service
        ? // The callback has the personal fields, too.
          { ...service, callback: undefined, transaction: toShown(service.transaction) }
        : { state: service.state, error: service.error },
    record: record.state === 'unread' ? { state: record.state, error: messageOf(record.error) } : record,
  };
}

/** What a transfer is known by. The rest may be personal, such as a wallet number. */
const shownFields = ['id', 'externalId', 'status', 'amount', 'currency', 'paymentMethod', 'provider', 'timestamp'];

/** The fields of a transfer that may be printed. */
function toShown(transaction: Transaction): Record<string, unknown> {
  return Object.fromEntries(shownFields.map((name) => [name, transaction[name]]));
}
