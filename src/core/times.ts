import { invalidArgument, maxTimerMs, wholeNumber } from '../lib/checks.js';
import { firstRetryMs, lastAttemptMs } from './service.js';

/** The defaults of the options in milliseconds. */
export const receiverDefaults = {
  verifyTimeoutMs: 5_000,
  confirmTimeoutMs: 10_000,
  inFlightWaitMs: 10_000,
  leaseMs: 15_000,
  handlerTimeoutMs: 20_000,
  storeTimeoutMs: 2_000,
  retentionMs: 604_800_000,
};

/** The options in milliseconds. */
export type ResolvedTimes = Readonly<typeof receiverDefaults>;

/** How many times a lease is renewed within `leaseMs`. */
export const renewalsPerLease = 3;

/** A lease is renewed for at most six `handlerTimeoutMs`. */
export const maxHandlerTimeouts = 6;

/** A shorter retention would forget a callback before the service's last attempt, and run the handler again. */
export const leastRetentionMs = lastAttemptMs + 1;

/** Returns the age above which `prune` deletes records, or throws INVALID_ARGUMENT: younger ones are still needed. */
export function requirePruneAge(olderThanMs: number): number {
  const limits = { min: leastRetentionMs, max: Number.MAX_SAFE_INTEGER, example: receiverDefaults.retentionMs };
  return wholeNumber('olderThanMs', olderThanMs, limits);
}

/** Returns the times of the receiver, with defaults applied. Throws INVALID_ARGUMENT. */
export function resolveTimes(options: Partial<Record<keyof ResolvedTimes, number | undefined>>): ResolvedTimes {
  const times = { ...receiverDefaults };
  for (const name of Object.keys(times) as (keyof ResolvedTimes)[]) {
    const given = options[name];
    if (given !== undefined) times[name] = given;
  }
  const { storeTimeoutMs } = times;
  const check = (name: keyof ResolvedTimes, min: number, max?: number): number =>
    wholeNumber(name, times[name], { min, max, example: receiverDefaults[name] });
  check('verifyTimeoutMs', 1);
  check('confirmTimeoutMs', 1);
  // With a shorter lease, one slow renewal would lose it. A lease of 30 s or more would outlast the service's first
  // retry after a crash.
  check('storeTimeoutMs', 1, Math.floor(firstRetryMs / renewalsPerLease) - 1);
  check('inFlightWaitMs', 0, maxTimerMs - storeTimeoutMs);
  const leastLeaseMs = renewalsPerLease * storeTimeoutMs + 1;
  if (options.leaseMs === undefined && times.leaseMs < leastLeaseMs) {
    const most = Math.floor((times.leaseMs - 1) / renewalsPerLease);
    const expected = `a whole number from 1 to ${most}, a third of \`leaseMs\`, or \`leaseMs\` to be given`;
    const example = `storeTimeoutMs: ${storeTimeoutMs}, leaseMs: ${leastLeaseMs}`;
    throw invalidArgument('storeTimeoutMs', expected, storeTimeoutMs, example);
  }
  check('leaseMs', leastLeaseMs, firstRetryMs - 1);
  check('handlerTimeoutMs', 1, Math.floor(maxTimerMs / maxHandlerTimeouts));
  check('retentionMs', leastRetentionMs, Number.MAX_SAFE_INTEGER);
  return times;
}
