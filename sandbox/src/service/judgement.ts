import { isAcknowledgement } from '../attempt/attempt.js';
import type { TransferCallback } from '../../../src/core/callback.js';
import { parseJson } from '../../../src/lib/text.js';
import type { SandboxAttempt } from './announcements.js';
import type { Transfer } from './transfer.js';

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

/** Judges the app by its response. It must refuse what is cut short, or contradicts what it has acknowledged. */
export function judgeAttempt(attempt: SandboxAttempt, transfer: Transfer): Judgement {
  const { response, contentType, body } = attempt;
  if ('error' in response && keptBack.includes(response.error)) return { tone: 'open', text: toResult(attempt) };
  const mustRefuse = parseJson(body) === undefined || findContradicted(attempt, transfer) !== undefined;
  if (isAcknowledgement(response)) {
    return mustRefuse ? { tone: 'bad', text: 'acknowledged wrongly' } : { tone: 'good', text: 'acknowledged' };
  }
  const mayRefuse = mustRefuse || contentType !== 'application/json';
  if (mayRefuse && 'status' in response && contentRefusals.includes(response.status)) {
    return { tone: 'good', text: 'refused rightly' };
  }
  return { tone: 'bad', text: toResult(attempt) };
}

/** Whether the app, or the network before it, responded other than with an acknowledgement. */
export function isRefused({ response }: SandboxAttempt): boolean {
  return 'error' in response ? !keptBack.includes(response.error) : !isAcknowledgement(response);
}

/** Returns the attempt before this one that announced the other outcome and was acknowledged. */
export function findContradicted(attempt: SandboxAttempt, { attempts }: Transfer): SandboxAttempt | undefined {
  const status = readFacts(attempt.body)?.status;
  if (status === undefined) return undefined;
  return attempts.slice(0, attempts.indexOf(attempt)).findLast((before) => {
    const announced = readFacts(before.body)?.status;
    return isAcknowledgement(before.response) && announced !== undefined && announced !== status;
  });
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
