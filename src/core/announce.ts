import { channel } from 'node:diagnostics_channel';
import type { CallbackShape } from './callback.js';
import type { ResolvedOptions } from './options.js';
import type { OutcomeName, TransferCallbackOutcome } from './outcome.js';

const outcomes = channel('transfer-callbacks:outcome');

/** How each outcome is logged. `processed` and `duplicate` are not, unless something is wrong with them. */
const lines: Record<Exclude<OutcomeName, 'processed' | 'duplicate'>, ['warn' | 'error', string]> = {
  in_progress: ['warn', 'Another delivery is still running the handler of this transfer callback.'],
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

/** Tells the logger, `onOutcome` and the diagnostics channel how a delivery ended. Never throws, never waits. */
export function announce<C extends CallbackShape, Tx>(
  outcome: TransferCallbackOutcome,
  { logger, onOutcome }: ResolvedOptions<C, Tx>,
): void {
  if (outcome.outcome === 'processed') {
    if (outcome.overlapped) {
      logger.error(
        outcome,
        'A transfer callback was handled, but its lease had passed on: it may have been handled twice.',
      );
    } else if (outcome.error !== undefined) {
      const { error, ...details } = outcome;
      logger.error({ ...details, err: error }, 'A transfer callback was handled; recording it failed and is retried.');
    }
  } else if (outcome.outcome !== 'duplicate') {
    const [level, message] = lines[outcome.outcome];
    const { error: err, ...details } = { error: undefined, ...outcome };
    logger[level](err === undefined ? details : { ...details, err }, message);
  }
  if (outcomes.hasSubscribers) outcomes.publish(outcome);
  if (onOutcome === undefined) return;
  const told = new Promise((resolve) => {
    resolve(onOutcome(outcome));
  });
  told.catch((error: unknown) => {
    logger.error({ err: error }, '`onOutcome` threw.');
  });
}
