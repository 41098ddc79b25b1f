import { outcomes, special } from '../../../src/core/outcomes.js';
import type { AttemptResponse } from '../attempt/attempt.js';

const see = 'See the log of your app.';

/** By status, or by its first digit. */
const byStatus: Readonly<Record<number, string>> = {
  2: 'Acknowledged, as any 2xx is, although transfer-callbacks did not send this response.',
  3: 'Redirects are not followed. Give the final address as callback URL.',
  400: 'Your app read the body, and it is not a documented callback.',
  401: 'The sender was refused. Does the callback URL, or a header, carry the token?',
  404:
    'Nothing is mounted at this path. With urlToken or transferToken the path of app.post ends in /:token, and the ' +
    'callback URL in the token. Correct the path or the URL.',
  405: 'The path is there, but takes no POST.',
  409: 'Another delivery of this callback was being handled.',
  413: 'The body is longer than the app allows.',
  415: 'Your app takes only application/json.',
  422: 'The same id with other facts is never acknowledged. In production this raises the alert TransferConflict.',
  500: `Your app failed, or something before it. ${see}`,
  503: 'Your app could not handle it now.',
};

const receiverRows = { ...outcomes, unreadable: special.unreadable };
type ReceiverOutcome = keyof typeof receiverRows;

/** By outcome of transfer-callbacks, where it tells more than the status. */
const byOutcome: Partial<Readonly<Record<ReceiverOutcome, string>>> = {
  processed: 'Your handler ran and succeeded.',
  duplicate: 'Handled before: your handler did not run again.',
  handler_failed: `Your handler threw. ${see}`,
  unconfirmed:
    'Your app asks the service (`confirm`), which has not confirmed it. No service knows what `trigger` sends. For ' +
    'the documented service run `transfer-sandbox`, let the `baseUrl` of your app be its address, and create the ' +
    'transfer there.',
  unreadable: `Your app read the body before the router, or its schema threw. ${see}`,
};

/**
 * Returns the outcome of transfer-callbacks that this response tells of; `undefined` if no such receiver sent it, or
 * one of a version with other sentences. `reason` is the result of `findReason`.
 */
export function findOutcome(response: AttemptResponse, reason: string | undefined): ReceiverOutcome | undefined {
  if (reason === undefined || !('status' in response)) return undefined;
  const names = Object.keys(receiverRows) as ReceiverOutcome[];
  return names.find((name) => {
    const row = receiverRows[name];
    return row.status === response.status && reason === ('message' in row ? row.message : name);
  });
}

const byError: readonly (readonly [RegExp, string])[] = [
  [/^lost$/, 'The scenario kept it from your app.'],
  [/^response lost$/, 'The scenario lost the response of your app, which will see the callback again.'],
  [/^aborted$/, 'The sandbox was closed.'],
  [/ECONNREFUSED/, 'Nothing listens there. Start your app, or correct the callback URL.'],
  [/ENOTFOUND|EAI_AGAIN/, 'No machine has this name.'],
  [
    /^no response within/,
    'Your app did not respond in time. Does the request reach the router, and does the handler end?',
  ],
  [/^no end of the response/, 'Your app began a response, and did not end it in time.'],
  [/certificate/, 'The certificate of your app is not trusted.'],
  [/./, 'The connection ended before the response did. Has your app crashed or restarted?'],
];

/** Returns what a response means and what to do about it, in a sentence. `reason` is the result of `findReason`. */
export function explainResponse(response: AttemptResponse, reason: string | undefined): string {
  if ('error' in response) return byError.find(([pattern]) => pattern.test(response.error))?.[1] ?? '';
  const { status, headers: { 'retry-after': retryAfter } = {} } = response;
  const outcome = findOutcome(response, reason);
  const hint = (outcome && byOutcome[outcome]) ?? byStatus[status] ?? byStatus[Math.floor(status / 100)];
  const pause = retryAfter === undefined ? '' : ` It asked for a pause of ${retryAfter} s; the service keeps its own.`;
  return `${hint ?? `Only a 2xx acknowledges. ${see}`}${pause}`;
}
