import { findReason, isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { explainResponse, findOutcome } from './hints.js';
import { readFacts, type Judgement } from './judgement.js';

/** What a forged sender received, what it proves about the app, and what to do next. */
export interface Forged extends Judgement {
  readonly response: AttemptResponse;
  readonly hint: string;
}

const trueHint = 'The service sends the same facts. Change one, such as the id or the amount, and send it again.';

const forgedHint =
  'Does the address hold a token? Change it, and send it again. If it holds none, and your app checks no IP ' +
  'addresses, it believes everyone: see docs/security.md.';

/**
 * Judges the app by its response to a forgery. A token may be anywhere in the address, in any form: only the person who
 * sends it knows. An app that asks the service rightly believes the `sent` bodies of a transfer.
 */
export function judgeForgery(response: AttemptResponse, body: string, sent: readonly string[]): Forged {
  const reason = findReason(response);
  const hint = explainResponse(response, reason);
  if (isDisbelief(response, reason)) return { response, tone: 'good', text: 'Your app did not believe it.', hint: '' };
  if (!isAcknowledgement(response)) {
    return { response, tone: 'none', text: 'This is not a verdict about the sender.', hint };
  }
  return hasFactsOf(body, sent)
    ? { response, tone: 'open', text: 'Your app acknowledged it, and it is true.', hint: trueHint }
    : { response, tone: 'bad', text: 'Your app acknowledged a forgery.', hint: forgedHint };
}

/** Whether the app did not trust the sender, or the service did not confirm what it sent. */
function isDisbelief(response: AttemptResponse, reason: string | undefined): boolean {
  if (!('status' in response)) return false;
  return [401, 403].includes(response.status) || findOutcome(response, reason) === 'unconfirmed';
}

function hasFactsOf(body: string, sent: readonly string[]): boolean {
  const facts = JSON.stringify(readFacts(body));
  return sent.some((each) => JSON.stringify(readFacts(each)) === facts);
}
