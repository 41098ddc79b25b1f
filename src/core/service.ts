/** The numbers that the service documents about its callbacks. No other number is documented. */

/** The first retry comes about this long after the first attempt (service §6.3). Later pauses are longer. */
export const firstRetryMs = 30_000;

/** Attempts per callback, the first included (service §6.3). */
export const attemptsPerCallback = 4;

/**
 * A handled callback must be remembered for longer than this. The backoff is exponential and its factor is not
 * documented (service §8), so the last attempt comes no sooner than three first pauses after the first one.
 */
export const lastAttemptMs = (attemptsPerCallback - 1) * firstRetryMs;
