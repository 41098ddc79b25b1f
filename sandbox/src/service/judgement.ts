import { findReason, isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import type { TransferCallback } from '../../../src/core/callback.js';
import { parseJson } from '../../../src/lib/text.js';
import type { SandboxAttempt } from './series.js';
import { expectOf, type Expected } from './scenarios.js';
import { explainResponse, findOutcome } from './hints.js';
import type { TransferHistory } from './history.js';

/** Whether an app did right: a sign and a colour of the console. `open` is not known yet, `none` is neither. */
export type Tone = 'good' | 'bad' | 'open' | 'none';

/** Whether an app did right, and what it did, in the words of the console. */
export interface Judgement {
  readonly tone: Tone;
  readonly text: string;
}

/** The scenario or the end of the sandbox kept these from the app, or their responses from the sandbox. */
const keptBack = ['lost', 'response lost', 'aborted'];

/** The statuses that refuse a callback for its content. */
const contentRefusals = [400, 409, 415, 422];

/** Judges the app by its response to one attempt. */
export function judgeAttempt(attempt: SandboxAttempt, transfer: TransferHistory): Judgement {
  const { response } = attempt;
  if ('error' in response && keptBack.includes(response.error)) return { tone: 'open', text: toResult(attempt) };
  const { does } = expectIn(transfer, attempt);
  if (isAcknowledgement(response)) {
    return does === 'refuse' ? { tone: 'bad', text: 'acknowledged wrongly' } : { tone: 'good', text: 'acknowledged' };
  }
  if (does !== 'acknowledge' && 'status' in response && contentRefusals.includes(response.status)) {
    return { tone: 'good', text: 'refused rightly' };
  }
  return { tone: 'bad', text: toResult(attempt) };
}

/** Whether the app, or the network before it, responded other than with an acknowledgement. */
export function isRefused({ response }: SandboxAttempt): boolean {
  return 'error' in response ? !keptBack.includes(response.error) : !isAcknowledgement(response);
}

/** Returns what a right app does with an attempt, after the attempts of the transfer before it. */
export function expectIn({ attempts }: TransferHistory, attempt: SandboxAttempt): Expected<SandboxAttempt> {
  return expectOf(attempt, attempts.slice(0, attempts.indexOf(attempt)));
}

export function toResult({ response }: SandboxAttempt): string {
  return 'status' in response ? String(response.status) : response.error.replace(/^lost$/, 'lost on the way');
}

/** Returns what identifies a callback and its outcome. Any of it may be missing; `undefined` if there is no `data`. */
export function readFacts(body: string) {
  const { event, data } = (parseJson(body) ?? {}) as {
    event?: unknown;
    data?: Partial<TransferCallback['data']> | null;
  };
  if (typeof data !== 'object' || data === null) return undefined;
  const { id, status, amount, currency, externalId } = data;
  return { event, id, status, amount, currency, externalId };
}

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
