import { isAcknowledgement } from '../attempt/attempt.js';
import type { SandboxAttempt } from './announcements.js';
import type { Transfer } from './transfer.js';

/** How the console marks something: with a sign and a colour. */
export type Tone = 'good' | 'bad' | 'open' | 'none';

/** The state of the callback of a transfer, and when something is due that changes it. */
export interface Standing {
  readonly tone: Tone;
  readonly text: string;
  readonly dueMs?: number;
}

/** What the list of the console can be narrowed to. A transfer may be of several of these. */
const outcomes = {
  acknowledged: ({ delivered }: Transfer) => delivered,
  refused: (transfer: Transfer) => !transfer.delivered && lastTone(transfer) === 'bad',
  waiting: (transfer: Transfer) => !transfer.delivered && lastTone(transfer) !== 'bad',
  contradicted: ({ events }: Transfer) => events.filter(({ type }) => type === 'final').length > 1,
};

/** Returns whether a transfer has this outcome, and `true` for a name that is not of an outcome. */
export function hasOutcome(outcome: string, transfer: Transfer): boolean {
  return !Object.hasOwn(outcomes, outcome) || outcomes[outcome as keyof typeof outcomes](transfer);
}

export function toTone({ response }: SandboxAttempt): Tone {
  if (isAcknowledgement(response)) return 'good';
  return 'error' in response && response.error === 'lost' ? 'open' : 'bad';
}

export function toResult({ response }: SandboxAttempt): string {
  return 'status' in response ? String(response.status) : response.error.replace(/^lost$/, 'lost on the way');
}

function lastTone({ lastAttempt }: Transfer): Tone {
  return lastAttempt === undefined ? 'open' : toTone(lastAttempt);
}

export function toStanding(transfer: Transfer): Standing {
  const { next, underWay, delivered, callbackUrl, final, finalDueMs, lastAttempt: last } = transfer;
  if (final === undefined) return { tone: 'open', text: 'final', dueMs: finalDueMs };
  const tone = lastTone(transfer);
  const before = last === undefined ? '' : `${tone === 'good' ? 'acknowledged' : toResult(last)}, `;
  if (underWay > 0) return { tone, text: `${before}${underWay} under way` };
  if (next !== undefined) return { tone, text: `${before}attempt ${next.number}`, dueMs: next.plannedAtMs };
  if (last === undefined) {
    return { tone: 'none', text: callbackUrl === undefined ? 'no callbackUrl' : 'no callback is sent' };
  }
  return delivered
    ? { tone: 'good', text: `acknowledged, attempt ${last.number}` }
    : { tone: 'bad', text: `${before}gave up after attempt ${last.number}` };
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
