import type { ServiceReading, TransferInspection } from '../client/index.js';
import { receiverDefaults } from '../core/options.js';
import { attemptCallback, findReason, isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { explainResponse } from '../sandbox/hints.js';
import { appHelp, appOptions, environmentHelp, findApp, inspectWithApp, requireClient } from './app.js';
import type { App } from './environment.js';
import { allowPositionals, flag, parseArguments, text, toNumber, UsageError } from './arguments.js';
import { endpointHelp, endpointOptions, toEndpoint } from './endpoint-options.js';
import { fit, jsonLine, paint, print, printable, width, wrap } from './terminal.js';
import { describePayout } from './transfer.js';

export const help = `Usage: transfer-callbacks resend <id or externalId> --to-env NAME [options]

Reads a transfer from the service, and sends its callback to your endpoint once,
as the service would. Your verifier, your schema and the record apply as usual,
so a callback that was handled is not handled again. An ipAllowList refuses it.

${endpointHelp}
  --timeout MS               How long to wait for the response (default 10000)
  --anyway                   Send it although its record may be lost or expired:
                             then the handler runs again if it ran before
${appHelp}
  --json                     Print one JSON object

${environmentHelp}

Exit code 0 if this package acknowledged the callback, 1 if not, 2 if the
arguments or the environment are wrong, 3 if the transfer could not be read.
`;

const options = {
  ...appOptions,
  ...endpointOptions,
  timeout: text,
  anyway: flag,
  json: flag,
} as const;

type FinalReading = Extract<ServiceReading, { state: 'final' }>;

/** Sends the callback of one transfer once. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  const [id] = positionals;
  if (id === undefined || id === '') {
    throw new UsageError('Expected an id: transfer-callbacks resend <id or externalId> --to-env NAME.');
  }
  allowPositionals(positionals, 1);
  const { anyway = false, json = false } = values;
  const { headers, urlFor } = toEndpoint(values);
  const timeoutMs = toNumber('--timeout', values.timeout);
  if (timeoutMs !== undefined && timeoutMs < 1) throw new UsageError('Expected --timeout to be at least 1.');

  const app = await findApp(values.config);
  requireClient(app);
  const inspection = await inspectWithApp(
    id,
    app.receiver === undefined && app.store === undefined ? { ...app, store: noStore } : app,
  );
  const refusal = findRefusal(inspection, anyway);
  if (refusal !== undefined) {
    print(json ? jsonLine({ type: 'resend', sent: false, because: refusal }) : `${refusalText(refusal)}\n`);
    return inspection.service.state === 'unread' ? 3 : 1;
  }
  const { event, transaction } = inspection.service as FinalReading;
  const body = JSON.stringify({ event, data: transaction });
  const startedAt = performance.now();
  const response = await attemptCallback(urlFor(transaction.externalId), body, { headers, timeoutMs });
  const durationMs = Math.round(performance.now() - startedAt);
  const acknowledged = isAcknowledged(response);
  if (json) {
    const { id: transferId, externalId } = transaction;
    print(
      jsonLine({
        type: 'resend',
        sent: true,
        id: transferId,
        externalId,
        event,
        acknowledged,
        durationMs,
        ...response,
      }),
    );
  } else {
    print(report(inspection.service as FinalReading, response, durationMs));
  }
  return acknowledged ? 0 : 1;
}

/** In place of a store that is not known: as if there were no record, and had been none for the default `retentionMs`. */
const noStore: NonNullable<App['store']> = {
  read: () =>
    Promise.resolve({ state: 'free', kept: { since: new Date(0), retentionMs: receiverDefaults.retentionMs } }),
};

/** Why the callback is not sent; `undefined` if it is. */
function findRefusal({ service, verdict, meaning, advice }: TransferInspection, anyway: boolean): string | undefined {
  switch (service.state) {
    case 'unread':
      return `${String(service.error?.message)} ${advice}`;
    case 'unknown':
      return 'The service responded with 404. This does not mean that the transfer has failed.';
    case 'open':
      return `The service has not finished this transfer: its status is ${printable(service.transaction.status)}.`;
    case 'final':
      if (verdict !== 'missed_or_forgotten' || anyway) return undefined;
      return `${meaning} Compare your own books, then add --anyway.`;
  }
}

function refusalText(refusal: string): string {
  const [first = '', ...others] = wrap(printable(`Not sent. ${refusal}`), width());
  return [first.replace('Not sent.', paint('red', 'Not sent.')), ...others].join('\n');
}

/** Whether this package has acknowledged. A login page or another route of the app may respond with 200, too. */
function isAcknowledged(response: AttemptResponse): boolean {
  return isAcknowledgement(response) && /^(?:processed|duplicate)$/.test(String(findReason(response)));
}

function report({ event, transaction }: FinalReading, response: AttemptResponse, durationMs: number): string {
  const title = `${transaction.externalId}  ${event}  ${describePayout(transaction)}`;
  const result = 'status' in response ? String(response.status) : response.error;
  const line = fit(printable(`${result}  ${durationMs} ms  ${findReason(response) ?? ''}`.trimEnd()), width() - 4);
  const isGood = isAcknowledged(response);
  const end = isGood ? ['Acknowledged.'] : ['Not acknowledged.', ...wrap(explain(response), width())];
  const colour = isGood ? 'green' : 'red';
  return (
    `${fit(printable(title.trimEnd()), width())}\n` +
    `  ${paint('dim', '←')} ${paint(colour, line)}\n` +
    end.map((each, index) => `${index === 0 ? paint(colour, each) : each}\n`).join('')
  );
}

function explain(response: AttemptResponse): string {
  if (isAcknowledgement(response)) {
    return 'It is a 2xx, but not from transfer-callbacks. Check the URL, and inspect the transfer.';
  }
  const hint = explainResponse(response, findReason(response));
  if ('status' in response && response.status === 404) return `${hint} Does it have the token already?`;
  return 'error' in response ? `${hint} The handler may still be running: inspect the transfer.` : hint;
}
