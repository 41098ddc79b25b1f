import { isAcknowledgement } from '../attempt/attempt.js';
import type { SandboxAttempt } from '../service/announcements.js';
import type { TransferScenario } from '../service/scenarios.js';

/** Whether the endpoint responded as it should in a scenario, and why in one sentence. */
export interface Verdict {
  readonly passed: boolean;
  readonly because: string;
}

/**
 * Judges an endpoint by its responses alone: what its handlers did, only the endpoint knows. `attempts` are all those
 * of one transfer, in their order.
 */
export function judgeAttempts(scenario: TransferScenario, attempts: readonly SandboxAttempt[]): Verdict {
  const [first] = attempts;
  if (first === undefined) return passed('No callback was sent: in this scenario only a query tells the final status.');
  if (scenario === 'flip') return judgeFlip(attempts);
  if (scenario === 'malformed' && isAcknowledged(first)) return failed('JSON that was cut short was acknowledged.');
  if (scenario === 'wrong-content-type' && isAcknowledged(first)) {
    return failed('A text/plain body was acknowledged; body parsers for JSON do not read it.');
  }
  const acknowledged = attempts.find(isAcknowledged);
  if (acknowledged === undefined) return failed(`None of ${attempts.length} attempts was acknowledged.`);
  if (scenario === 'duplicate' && !isAcknowledged(attempts.at(-1) ?? first)) {
    return failed('The callback was acknowledged, but refused when it came again.');
  }
  return passed(`The callback was acknowledged at attempt ${acknowledged.number}.`);
}

function judgeFlip(attempts: readonly SandboxAttempt[]): Verdict {
  const isFailure = ({ body }: SandboxAttempt): boolean => body.includes('"event":"transfer.failed"');
  if (!attempts.filter(isFailure).some(isAcknowledged)) return failed('FAILED was not acknowledged.');
  const accepted = attempts.some((attempt) => !isFailure(attempt) && isAcknowledged(attempt));
  return accepted
    ? failed('After FAILED, SUCCESS was acknowledged for the same id: a payout may count twice.')
    : passed('FAILED was acknowledged; the contradiction that followed it was refused.');
}

function isAcknowledged({ response }: SandboxAttempt): boolean {
  return isAcknowledgement(response);
}

const passed = (because: string): Verdict => ({ passed: true, because });
const failed = (because: string): Verdict => ({ passed: false, because });
