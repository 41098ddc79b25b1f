import { wholeNumber } from '../../lib/checks.js';
import { requireSignal } from '../checks.js';

/** Options of a run over many transfers. */
export interface RunOptions {
  /**
   * How many transfers are processed at the same time, at most 10 000.
   * @default 4
   */
  concurrency?: number | undefined;
  /**
   * How many queries may begin per second. The client's own retries are not counted.
   * @default unlimited
   */
  queriesPerSecond?: number | undefined;
  /**
   * How many transfers are taken at most, of both lists together.
   * @default all
   */
  limit?: number | undefined;
  /**
   * Ends the run: no further transfers are read, those being read stay pending, and running handlers finish. Pass
   * `AbortSignal.timeout(ms)` to end it after a time.
   * @default none
   */
  signal?: AbortSignal | undefined;
}

export const runOptionNames = ['concurrency', 'queriesPerSecond', 'limit', 'signal'];

/** Throws INVALID_ARGUMENT. */
export function checkRunOptions(options: RunOptions): void {
  const { concurrency, queriesPerSecond, limit, signal } = options;
  // Each of them is a worker, which takes memory whether it has a transfer or not.
  if (concurrency !== undefined) wholeNumber('concurrency', concurrency, { min: 1, max: 10_000, example: 4 });
  if (queriesPerSecond !== undefined) wholeNumber('queriesPerSecond', queriesPerSecond, { min: 1, example: 10 });
  if (limit !== undefined) wholeNumber('limit', limit, { min: 1, example: 1_000 });
  requireSignal(signal);
}
