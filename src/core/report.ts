import { channel } from 'node:diagnostics_channel';
import type { ResolvedOptions } from './options.js';
import { findRow, type OutcomeRow, type TransferCallbackOutcome } from './outcomes.js';
import { copyString } from '../lib/text.js';

const outcomes = channel('transfer-callbacks:outcome');

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
  type: true,
  count: true,
  status: true,
  source: true,
  durationMs: true,
  waitedMs: true,
  retryAfterMs: true,
  recorded: true,
  received: true,
  overlapped: true,
  late: true,
  verified: true,
  refusedBy: true,
  issues: true,
};
export const logFields: readonly string[] = Object.keys(logged);

/**
 * Freezes the outcome and reports it to the logger, `onOutcome` and the diagnostics channel. Never throws or waits.
 * `row` has the level and the line.
 */
export function report(
  outcome: TransferCallbackOutcome,
  { logger, onOutcome }: Pick<ResolvedOptions, 'logger' | 'onOutcome'>,
  { level, line }: OutcomeRow = findRow(outcome),
): void {
  Object.freeze(outcome);
  if (logger[level] !== undefined) logger[level](toDetails(outcome), line);
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

/** Returns those fields of a log line that the outcome has. */
function toDetails(outcome: TransferCallbackOutcome): object {
  const values = outcome as Readonly<Record<string, unknown>>;
  const details: Record<string, unknown> = {};
  for (const field of logFields) if (values[field] !== undefined) details[field] = values[field];
  if (values.error !== undefined) details.err = values.error;
  return details;
}

/** Anybody may send names without end, if no verifier refuses them. */
const mostNames = 1_000;

/** Counts the events that the definition of a service ignores, by their names. */
export class IgnoredNames {
  /** The name that has not come for the longest time is the first one. */
  readonly #counts = new Map<string, number>();

  /**
   * Returns how many events of this name have come: 1 for the first. Forgets a name after 1 000 others. A name must be
   * printable, because that limits its length.
   */
  count(name: string): number {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.delete(name);
    this.#counts.set(copyString(name), count);
    if (this.#counts.size > mostNames) this.#counts.delete(String(this.#counts.keys().next().value));
    return count;
  }
}
