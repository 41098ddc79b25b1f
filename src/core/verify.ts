import type { CallbackShape } from './callback.js';
import { TransferCallbackError } from './errors.js';
import type { Unauthorized } from './outcome.js';
import { settleWithin, type TimerQueue } from './timers.js';

/** Resolves with `undefined` if the sender is trusted. Never rejects: a verifier that throws or is late refuses. */
export async function verifySender<C extends CallbackShape>(
  verify: (callback: C | undefined) => boolean | Promise<boolean>,
  callback: C | undefined,
  deadlines: TimerQueue,
  verifyTimeoutMs: number,
): Promise<Unauthorized | undefined> {
  try {
    // Callers from JavaScript may return anything.
    const verdict: unknown = verify(callback);
    // A boolean verdict needs no deadline.
    const isTrusted =
      typeof verdict === 'boolean'
        ? verdict
        : await settleWithin(
            deadlines,
            () => verdict,
            () => new TransferCallbackError('VERIFY_TIMEOUT', `No verdict within ${verifyTimeoutMs} ms.`),
          );
    return isTrusted === true ? undefined : { outcome: 'unauthorized' };
  } catch (error) {
    return { outcome: 'unauthorized', error };
  }
}
