import { transferFate, type ServiceReading } from '../client/index.js';
import { attemptCallback, isAcknowledgement } from '../delivery/attempt.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from './arguments.js';
import { endpointHelp, endpointOptions, toEndpoint, unauthorizedHint } from './secured.js';
import { describePayout, requireClient, serviceOptions } from './service.js';
import { fit, jsonLine, paint, print, printable, width, wrap } from './terminal.js';
import { toAge, toUtc } from './times.js';

export const help = `Usage: transfer-callbacks resend <id or externalId> --to URL [options]

Reads a transfer from the service, and sends its callback to your endpoint once,
as the service would. There it meets your verifier, your schema and the record
of what was handled, so that a callback that was handled before is not handled
again. It does not pass an ipAllowList.

  --to URL                   The callback endpoint: https, or on this machine
${endpointHelp}
  --anyway                   Send it although its record may have expired: then
                             the handler runs again if it ran before. Needed for
                             a transfer that is final for over 7 days, or that
                             does not say since when
  --retention MS             The receiver's retentionMs, in place of 7 days
  --service URL              Where the service is, or TRANSFER_SERVICE_URL
  --json                     Print one JSON object

Environment:
  TRANSFER_API_KEY           The merchant's key
  TRANSFER_API_SECRET        Its secret

Exit code 0 if the callback was acknowledged, 1 if it was not or was not sent, 2
if the arguments or the environment are wrong, 3 if the transfer could not be
read.
`;

const options = {
  ...endpointOptions,
  ...serviceOptions,
  to: text,
  anyway: flag,
  retention: text,
  json: flag,
};

type FinalReading = Extract<ServiceReading, { state: 'final' }>;
type Attempt = Awaited<ReturnType<typeof attemptCallback>>;

/** Sends the callback of one transfer once. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  const [id] = positionals;
  if (id === undefined || id === '') {
    throw new UsageError('Expected an id: transfer-callbacks resend <id or externalId> --to URL.');
  }
  allowPositionals(positionals, 1);
  const { to, anyway = false, json = false } = values;
  if (to === undefined) throw new UsageError('Expected --to URL, the callback endpoint.');
  const { headers, urlFor } = toEndpoint('--to', to, values);
  const retentionMs = toNumber('--retention', values.retention);

  const { service, verdict } = await transferFate({
    id,
    client: requireClient(values),
    // As if there were no record: the verdict then tells whether one may have expired.
    store: { read: () => Promise.resolve({ state: 'free' }) },
    retentionMs,
  });
  const refusal = findRefusal(service, verdict === 'missed_or_forgotten' && !anyway);
  if (refusal !== undefined) {
    print(json ? jsonLine({ type: 'resend', sent: false, because: refusal }) : `${refusalText(refusal)}\n`);
    return service.state === 'unread' ? 3 : 1;
  }
  const { event, transaction } = service as FinalReading;
  const body = JSON.stringify({ event, data: transaction });
  const startedAt = performance.now();
  const attempt = await attemptCallback(urlFor(transaction.externalId), body, { headers });
  const durationMs = Math.round(performance.now() - startedAt);
  const acknowledged = isAcknowledgement(attempt);
  if (json) {
    const { id: transferId, externalId } = transaction;
    print(
      jsonLine({ type: 'resend', sent: true, id: transferId, externalId, event, acknowledged, durationMs, ...attempt }),
    );
  } else {
    print(report(service as FinalReading, attempt, durationMs));
  }
  return acknowledged ? 0 : 1;
}

/** Why the callback is not sent; `undefined` if it is. */
function findRefusal(service: ServiceReading, isPerhapsForgotten: boolean): string | undefined {
  switch (service.state) {
    case 'unread':
      return String(service.error?.message);
    case 'unknown':
      return 'The service responded with 404. This does not mean that the transfer has failed.';
    case 'open':
      return `The service has not finished this transfer: its status is ${printable(service.transaction.status)}.`;
    case 'final': {
      if (!isPerhapsForgotten) return undefined;
      const { finalAt } = service;
      const since = finalAt === undefined ? 'at an unknown time' : `${toUtc(finalAt)}, ${toAge(finalAt)}`;
      return `The transfer became final ${since}. Its record may have expired: compare your own books, then add --anyway.`;
    }
  }
}

function refusalText(refusal: string): string {
  const [first = '', ...others] = wrap(printable(`Not sent. ${refusal}`), width());
  return [first.replace('Not sent.', paint('red', 'Not sent.')), ...others].join('\n');
}

function report({ event, transaction }: FinalReading, attempt: Attempt, durationMs: number): string {
  const isAcknowledged = isAcknowledgement(attempt);
  const title = `${transaction.externalId}  ${event}  ${describePayout(transaction)}`;
  const result = 'status' in attempt ? String(attempt.status) : attempt.error;
  const reason = 'status' in attempt ? findReason(attempt.body) : '';
  const line = fit(printable(`${result}  ${durationMs} ms  ${reason}`.trimEnd()), width() - 4);
  const hint = 'status' in attempt && attempt.status === 401 ? unauthorizedHint : '';
  return (
    `${fit(printable(title.trimEnd()), width())}\n` +
    `  ${paint('dim', '←')} ${paint(isAcknowledged ? 'green' : 'red', line)}\n${hint}` +
    (isAcknowledged ? `${paint('green', 'Acknowledged.')}\n` : `${paint('red', 'Not acknowledged.')}\n`)
  );
}

/** What the response tells of itself: the message of an error, or the outcome of a success. */
function findReason(body: string): string {
  try {
    const { message, outcome } = JSON.parse(body) as { message?: unknown; outcome?: unknown };
    return [message, outcome].find((each) => typeof each === 'string') ?? '';
  } catch {
    return ''; // The body is not JSON, or it is `null`.
  }
}
