import type { TransferVerdict, TransferInspection } from '../client/index.js';
import { appHelp, appOptions, environmentHelp, findApp, inspectWithApp } from './app.js';
import type { App } from './environment.js';
import { allowPositionals, exampleFile, flag, parseArguments, readIds, UsageError } from './arguments.js';
import { describeUnread, inspectionLine, inspectionReport } from './inspection-report.js';
import { jsonLine, print } from './terminal.js';
import { toShown } from './transfer.js';

export const help = `Usage: transfer-callbacks inspect <id or externalId> [options]
       transfer-callbacks inspect [options] < ids

Tells what became of one transfer, and what to do: compares what the service
responds with what your store has recorded. It only reads. Without one of the
two it shows the other, and concludes nothing. Of the ids on standard input, one
per line, it prints a line each.

${appHelp}
  --json                     Print one JSON object for each transfer

${environmentHelp}
  REDIS_URL                  The Redis of a redisStore() without options
  DATABASE_URL, PGHOST, …    The PostgreSQL of a postgresStore() without options

Run this in your app's folder: the store is read with the ioredis, iovalkey,
redis or pg that is installed there.

Exit code 0 if there is nothing to do, 1 if you should look into it, 2 if the
arguments or the environment are wrong, 3 if nothing can be concluded. Of many
transfers the first of 1, 3 and 0 counts that one of them has.
`;

/** A verdict as an exit code: 0 nothing to do, 1 look into it, 3 nothing can be concluded. */
const exitCodes: Readonly<Record<TransferVerdict, number>> = {
  open: 0,
  in_progress: 0,
  handled: 0,
  missed: 1,
  missed_or_forgotten: 1,
  conflict: 1,
  unfounded: 1,
  unknown: 1,
  undecided: 3,
};

/** After so many transfers in a row of which nothing can be concluded, the others are not tried. */
const mostUndecided = 5;

/** Tells what became of one transfer, or of many. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, { ...appOptions, json: flag });
  allowPositionals(positionals, 1);
  const [id] = positionals;
  if (id === '') throw new UsageError('Expected an id: transfer-callbacks inspect <id or externalId>.');
  const app = await findApp(values.config);
  if (app.client === undefined && app.store === undefined && app.receiver === undefined) {
    throw new UsageError(
      `Expected TRANSFER_SERVICE_URL, REDIS_URL or DATABASE_URL in the environment.\n${exampleFile}`,
    );
  }
  const isJson = values.json === true;
  if (id === undefined) return inspectAll(await readIds(), app, isJson);
  const inspection = await inspectWithApp(id, app);
  print(isJson ? jsonLine(toJson(inspection, app)) : inspectionReport(inspection, app, values.config));
  return exitCodes[inspection.verdict];
}

async function inspectAll(ids: readonly string[], app: App, isJson: boolean): Promise<number> {
  const codes = new Set<number>();
  let undecided = 0;
  for (const id of ids) {
    const inspection = await inspectWithApp(id, app);
    print(isJson ? jsonLine(toJson(inspection, app)) : inspectionLine(inspection));
    codes.add(exitCodes[inspection.verdict]);
    undecided = inspection.verdict === 'undecided' ? undecided + 1 : 0;
    if (undecided === mostUndecided) {
      process.stderr.write(`Stopped after ${id}: ${inspection.meaning} ${inspection.advice}\n`);
      break;
    }
  }
  return [1, 3, 0].find((code) => codes.has(code)) ?? 0;
}

function toJson({ service, record, ...inspection }: TransferInspection, app: App): object {
  return {
    ...inspection,
    service:
      'transaction' in service
        ? { ...service, transaction: toShown(service.transaction) }
        : { state: service.state, error: service.error },
    record: record.state === 'unread' ? { state: record.state, error: describeUnread(record, app) } : record,
  };
}
