import { channel } from 'node:diagnostics_channel';
import type { CallbackShape } from './callback.js';
import type { ResolvedOptions } from './options.js';
import type { OutcomeName, TransferCallbackOutcome } from './outcome.js';

const outcomes = channel('transfer-callbacks:outcome');

type Level = 'warn' | 'error';

/** How each outcome is logged. `processed` and `duplicate` are not, unless something is wrong with them. */
const lines: Record<Exclude<OutcomeName, 'processed' | 'duplicate'>, [Level, string]> = {
  in_progress: ['warn', 'Another delivery still holds the claim of this transfer callback; the service retries.'],
  conflict: ['error', 'A transfer callback contradicts the one that was settled under its id.'],
  invalid: ['warn', 'A transfer callback is not as documented.'],
  unauthorized: ['warn', 'A transfer callback came from a sender that was not verified.'],
  unconfirmed: ['error', 'A transfer callback could not be confirmed.'],
  retry_later: ['warn', 'The handler of a transfer callback asked to be called again later.'],
  handler_failed: ['error', 'The handler of a transfer callback failed.'],
  timed_out: ['error', 'The handler of a transfer callback did not settle in time.'],
  store_unavailable: ['error', 'A transfer callback was not acknowledged because the store failed.'],
  closing: ['warn', 'A transfer callback came while the receiver was closing.'],
};

/** Freezes the outcome, and reports it to the logger, `onOutcome` and the diagnostics channel. Never throws, never waits. */
export function report<C extends CallbackShape, Tx>(
  outcome: TransferCallbackOutcome,
  { logger, onOutcome }: ResolvedOptions<C, Tx>,
): void {
  Object.freeze(outcome);
  const line = findLine(outcome);
  if (line !== undefined) {
    const { error: err, ...details } = { error: undefined, ...outcome };
    logger[line[0]](err === undefined ? details : { ...details, err }, line[1]);
  }
  if (outcomes.hasSubscribers) outcomes.publish(outcome);
  if (onOutcome === undefined) return;
  const reported = new Promise((resolve) => {
    resolve(onOutcome(outcome));
  });
  reported.catch((error: unknown) => {
    logger.error({ delivery: outcome.delivery, err: error }, '`onOutcome` threw.');
  });
}

function findLine(outcome: TransferCallbackOutcome): readonly [Level, string] | undefined {
  if (outcome.outcome === 'duplicate') return undefined;
  if (outcome.outcome === 'processed') {
    if (outcome.overlapped) {
      return ['error', 'A transfer callback was handled, but its lease had passed on: it may have been handled twice.'];
    }
    if (outcome.error !== undefined) {
      return [
        'error',
        'A transfer callback was handled; recording it failed, and is retried until the receiver closes.',
      ];
    }
    return outcome.late ? ['warn', 'A transfer callback was handled late; the next attempt gets a 200.'] : undefined;
  }
  if (outcome.outcome === 'invalid' && outcome.error !== undefined) {
    return ['error', 'A transfer callback could not be read; this app is at fault.'];
  }
  if (outcome.outcome === 'invalid' && outcome.verified) {
    return ['error', 'A transfer callback of a verified sender is not as documented; look into this payout.'];
  }
  return lines[outcome.outcome];
}
