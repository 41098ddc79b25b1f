import { attemptsPerCallback } from '../../../src/core/service.js';
import { isAcknowledgement } from '../attempt/attempt.js';
import type { PlannedAttempt, SandboxAttempt } from './series.js';
import { isRefused, judgeAttempt, toResult, type Judgement } from './judgement.js';
import type { TransferHistory } from './history.js';

/** The state of the callback of a transfer, and when something is due that changes it. */
export interface CallbackState extends Judgement {
  readonly dueMs?: number;
}

/** What the list of the console can be narrowed to. A transfer may be of several of these. */
const outcomes = {
  acknowledged: ({ delivered }: TransferHistory) => delivered,
  refused: ({ delivered, attempts }: TransferHistory) => !delivered && attempts.slice(-1).some(isRefused),
  waiting: (transfer: TransferHistory) => !transfer.delivered && !outcomes.refused(transfer),
  contradicted: ({ events }: TransferHistory) => events.filter(({ type }) => type === 'final').length > 1,
};

/** Returns whether a transfer has this outcome, and `true` for a name that is not of an outcome. */
export function hasOutcome(outcome: string, transfer: TransferHistory): boolean {
  return !Object.hasOwn(outcomes, outcome) || outcomes[outcome as keyof typeof outcomes](transfer);
}

export function toCallbackState(transfer: TransferHistory): CallbackState {
  const { next, underWay, delivered, callbackUrl, final, finalDueMs } = transfer;
  const last = transfer.attempts.at(-1);
  if (final === undefined) return { tone: 'open', text: 'final', dueMs: finalDueMs };
  const { tone, text }: Judgement = last === undefined ? { tone: 'open', text: '' } : judgeAttempt(last, transfer);
  const isRepeated = delivered && last !== undefined && !isAcknowledgement(last.response);
  const before = text && `${isRepeated ? 'acknowledged, then ' : ''}${text}, `;
  if (underWay > 0) return { tone, text: `${before}${underWay} under way` };
  if (next !== undefined) return { tone, text: `${before}${nameAttempt(next, transfer)}`, dueMs: next.plannedAtMs };
  if (delivered && last !== undefined) return { tone, text: `${before}${nameAttempt(last, transfer)}` };
  const after = wasQueried(transfer) ? ', then queried' : '';
  if (last === undefined) {
    const why = callbackUrl === undefined ? 'no callbackUrl' : 'no callback is sent';
    return { tone: 'none', text: `${why}${after}` };
  }
  return { tone, text: `${before}gave up after ${nameAttempt(last, transfer)}${after}` };
}

/** Whether a query has shown the final status to the app: so it may know the outcome without a callback. */
function wasQueried({ events, final }: TransferHistory): boolean {
  return events.some((event) => event.type === 'queried' && event.status === final?.callback.data.status);
}

/** Returns what an attempt is called: `attempt 2`, or `copy 10 of 10` where copies are sent concurrently. */
export function nameAttempt({ number, plannedAtMs }: PlannedAttempt, { attempts, behaviour }: TransferHistory): string {
  const copies = behaviour.series?.copies ?? 1;
  const together = attempts.filter((each) => each.plannedAtMs === plannedAtMs).length;
  if (copies > 1 && together > 1) return `copy ${number} of ${together}`;
  // The copies have numbers of their own, and count as one attempt.
  return `attempt ${number > attemptsPerCallback ? number - copies + 1 : number}`;
}

/** Returns one sentence about at least one attempt, as in "burst-1: 10 attempts, 10 got 200". */
export function tellAttempts(attempts: readonly SandboxAttempt[]): string {
  const names = [...new Set(attempts.map(({ externalId }) => externalId))];
  if (names.length > 1) return `${names.length} transfers: ${attempts.length} attempts`;
  const results = attempts.map((attempt) => {
    const result = `${'status' in attempt.response ? 'got ' : ''}${toResult(attempt)}`;
    return attempt.reason === 'duplicate' ? `${result} duplicate` : result;
  });
  const [name = ''] = names;
  if (attempts.length === 1) return `${name}: attempt ${Number(attempts[0]?.number)} ${String(results[0])}`;
  const counts = [...new Set(results)].map((result) => `${results.filter((each) => each === result).length} ${result}`);
  return `${name}: ${attempts.length} attempts, ${counts.join(', ')}`;
}
