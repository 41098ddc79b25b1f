import { isAcknowledgement } from '../attempt/attempt.js';
import type { TransferCallback } from '../../../src/core/callback.js';
import { parseJson } from '../../../src/lib/text.js';
import type { SandboxAttempt } from './series.js';
import { expectOf, type Expected } from './scenarios.js';
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
