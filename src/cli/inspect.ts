import { transferFate, type FateVerdict, type TransferFate, type TransferClient } from '../client/index.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from './arguments.js';
import { driverTimeoutMs, type OpenStore } from './drivers.js';
import { fateReport } from './fate-report.js';
import { findClient, serviceOptions, toShown } from './service.js';
import { findStore, storeOptions } from './store.js';
import { jsonLine, messageOf, print } from './terminal.js';

export const help = `Usage: transfer-callbacks inspect <id or externalId> [options]

Tells what became of one transfer, and what to do: compares what the service
responds with what your store has recorded. It only reads. Without one of the
two it shows the other, and concludes nothing.

  --service URL              Where the service is, or TRANSFER_SERVICE_URL
  --redis URL                The Redis of your store, or any node of its
                             Cluster; or REDIS_URL
  --prefix TEXT              The prefix of redisStore, if it is not the default
  --postgres URL             The PostgreSQL of your store, or DATABASE_URL
  --table NAME               The table of postgresStore, if not the default
  --schema NAME              Its schema, if it is not in the search path
  --store redis|postgres     Which one, if the addresses of both are given
  --retention MS             The receiver's retentionMs, if it is not the
                             default (604800000, which is 7 days)
  --json                     Print one JSON object

Environment, for what other users of the machine must not see:
  TRANSFER_API_KEY           The merchant's key
  TRANSFER_API_SECRET        Its secret
  REDIS_URL, DATABASE_URL    A store's address with a password

Run this in your app's folder: the store is read with the ioredis, iovalkey,
redis or pg that is installed there.

Exit code 0 if there is nothing to do, 1 if you should look into it, 2 if the
arguments or the environment are wrong, 3 if nothing can be concluded.
`;

const options = { ...serviceOptions, ...storeOptions, retention: text, json: flag };

/** A verdict as an exit code: 0 nothing to do, 1 look into it, 3 nothing can be concluded. */
const exitCodes: Readonly<Record<FateVerdict, number>> = {
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

/** Tells what became of one transfer. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  const [id] = positionals;
  if (id === undefined || id === '') {
    throw new UsageError('Expected an id: transfer-callbacks inspect <id or externalId>.');
  }
  allowPositionals(positionals, 1);
  const client = findClient(values);
  const open = findStore(values);
  if (client === undefined && open === undefined) {
    throw new UsageError('Expected TRANSFER_SERVICE_URL, REDIS_URL or DATABASE_URL in the environment, or an option.');
  }
  const retentionMs = toNumber('--retention', values.retention);
  const fate = await readFate(id, client, open, retentionMs);
  print(values.json === true ? jsonLine(toJson(fate)) : fateReport(fate));
  return exitCodes[fate.verdict];
}

async function readFate(
  id: string,
  client: TransferClient | undefined,
  open: (() => Promise<OpenStore>) | undefined,
  retentionMs: number | undefined,
): Promise<TransferFate> {
  const opened = open === undefined ? undefined : await openOrReject(open);
  try {
    return await transferFate({ id, client, store: opened?.store, retentionMs, storeTimeoutMs: driverTimeoutMs });
  } finally {
    await opened?.close();
  }
}

/** A store that cannot be reached rejects when it is read, so that the service's response is still shown. */
async function openOrReject(open: () => Promise<OpenStore>): Promise<OpenStore> {
  try {
    return await open();
  } catch (error) {
    const read = (): Promise<never> => {
      throw error;
    };
    return { store: { read }, close: () => undefined };
  }
}

function toJson({ service, record, ...fate }: TransferFate): object {
  return {
    ...fate,
    service:
      'transaction' in service
        ? { ...service, transaction: toShown(service.transaction) }
        : { state: service.state, error: service.error },
    record: record.state === 'unread' ? { state: record.state, error: messageOf(record.error) } : record,
  };
}
