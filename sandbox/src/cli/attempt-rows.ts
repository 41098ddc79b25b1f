import { isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import { fit, paint, printable, width } from '../../../src/cli/terminal.js';
import type { SandboxAttempt } from '../service/series.js';

type Describe = (body: string) => string | undefined;

/**
 * Two or three lines on an attempt: what was sent, what came back and why. `when` comes first, and sets the indent.
 * `describe` returns the facts of a body; `undefined` if the body is not a callback.
 */
export function attemptRows(attempt: SandboxAttempt, when: string, describe: Describe = describeDocumented): string {
  const { number, response, durationMs, reason, nextAtMs, plannedAtMs } = attempt;
  const indent = ' '.repeat(when.length + 2);
  const tail = `  ${printable(describe(attempt.body) ?? '(no callback)')}  attempt ${number}`;
  const name = fit(printable(attempt.externalId), width() - indent.length - tail.length);

  const result = describeResponse(response);
  const took = isLost(response) ? '' : `  ${durationMs} ms`;
  const next = nextAtMs === undefined ? '' : `  next in ${(nextAtMs - plannedAtMs) / 1_000} s`;
  const why = reason === undefined ? '' : printable(reason);
  const isShort = `${indent}← ${result}${took}  ${why}${next}`.length <= width();
  const colour = isAcknowledgement(response) ? 'green' : 'red';
  const inline = why !== '' && isShort ? `  ${why}` : '';
  const below = isShort ? '' : `${indent}  ${fit(why, width() - indent.length - 2)}\n`;
  return (
    `${paint('dim', when)}  ${name}${tail}\n` +
    `${indent}${paint('dim', '←')} ${paint(colour, result)}${took}${inline}${next}\n${below}`
  );
}

function isLost(response: AttemptResponse): boolean {
  return 'error' in response && response.error === 'lost';
}

function describeResponse(response: AttemptResponse): string {
  if ('status' in response) return String(response.status);
  return isLost(response) ? 'lost: part of the scenario' : fit(printable(response.error), 50);
}

/** The user's own payload and the payload of the scenario `malformed` may not be callbacks. */
function describeDocumented(body: string): string | undefined {
  try {
    const { event, data } = JSON.parse(body) as { event?: string; data: { amount: number; currency: string } };
    return event === undefined ? undefined : `${event}  ${data.amount} ${data.currency}`;
  } catch {
    return undefined;
  }
}
