import { channel } from 'node:diagnostics_channel';
import type { ResolvedOptions } from './options.js';
import type { OutcomeName, TransferCallbackOutcome } from './outcome.js';

const outcomes = channel('transfer-callbacks:outcome');

/** The level and the message of an outcome's log line. Loggers without `info` get no line of that level. */
type LogLine = readonly ['info' | 'warn' | 'error', string];

/** The log lines of all outcomes. `warn`: a retry of the service resolves it. `error`: a person must investigate. */
const lines: Record<OutcomeName, LogLine> = {
  processed: ['info', 'A transfer callback was handled.'],
  duplicate: ['info', 'A transfer callback had been handled before.'],
  in_progress: ['warn', 'Another delivery still holds the claim of this transfer callback; the service retries.'],
  conflict: ['error', 'A transfer callback contradicts the one that was settled under its id.'],
  invalid: ['warn', 'A transfer callback is not as documented.'],
  unauthorized: ['warn', 'A transfer callback came from a sender that was not verified.'],
  unconfirmed: ['error', 'A transfer callback could not be confirmed.'],
  retry_later: ['warn', 'The handler of a transfer callback asked to be called again later.'],
  handler_failed: ['error', 'The handler of a transfer callback failed.'],
  timed_out: ['error', 'The handler of a transfer callback did not finish in time.'],
  store_unavailable: ['error', 'A transfer callback was not acknowledged because the store failed.'],
  closing: ['warn', 'A transfer callback came while the receiver was closing.'],
};

const overlapped: LogLine = [
  'error',
  'A transfer callback was handled, but its lease had passed to another delivery: it may have been handled twice.',
];
const unrecorded: LogLine = [
  'error',
  'A transfer callback was handled; recording it failed, and is retried until the receiver closes.',
];
const late: LogLine = ['warn', 'A transfer callback was handled late; the next attempt gets a 200.'];
const unreadable: LogLine = ['error', 'A transfer callback could not be read; this app is at fault.'];
const undocumented: LogLine = [
  'error',
  'A transfer callback of a verified sender is not as documented; look into this payout.',
];

type Field = TransferCallbackOutcome extends infer Each ? (Each extends unknown ? keyof Each : never) : never;

/**
 * The fields of a log line in their order, before `err`. Without `timestamp`, because log pipelines read a field of
 * that name as the time of the line.
 */
const logged: Record<Exclude<Field, 'error' | 'timestamp'>, true> = {
  delivery: true,
  outcome: true,
  id: true,
  externalId: true,
  event: true,
  status: true,
  source: true,
  durationMs: true,
  waitedMs: true,
  retryAfterMs: true,
  settled: true,
  received: true,
  overlapped: true,
  late: true,
  verified: true,
  issues: true,
};
export const logFields: readonly string[] = Object.keys(logged);

/** Freezes the outcome and reports it to the logger, `onOutcome` and the diagnostics channel. Never throws or waits. */
export function report(
  outcome: TransferCallbackOutcome,
  { logger, onOutcome }: Pick<ResolvedOptions, 'logger' | 'onOutcome'>,
): void {
  Object.freeze(outcome);
  const [level, message] = findLine(outcome);
  if (logger[level] !== undefined) logger[level](toDetails(outcome), message);
  outcomes.publish(outcome);
  if (onOutcome === undefined) return;
  const reported = new Promise((resolve) => {
    resolve(onOutcome(outcome));
  });
  reported.catch((error: unknown) => {
    const { delivery, id } = outcome;
    logger.error({ delivery, ...(id !== undefined && { id }), err: error }, '`onOutcome` threw.');
  });
}

function findLine(outcome: TransferCallbackOutcome): LogLine {
  if (outcome.outcome === 'processed') {
    if (outcome.overlapped) return overlapped;
    if (outcome.error !== undefined) return unrecorded;
    if (outcome.late) return late;
  }
  if (outcome.outcome === 'invalid') {
    if (outcome.error !== undefined) return unreadable;
    if (outcome.verified) return undocumented;
  }
  return lines[outcome.outcome];
}

/** Returns those fields of a log line that the outcome has. */
function toDetails(outcome: TransferCallbackOutcome): object {
  const values = outcome as Readonly<Record<string, unknown>>;
  const details: Record<string, unknown> = {};
  for (const field of logFields) if (values[field] !== undefined) details[field] = values[field];
  if (values.error !== undefined) details.err = values.error;
  return details;
}
