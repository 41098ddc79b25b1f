import { callWithin } from './deadline.js';
import { TransferCallbackError } from './errors.js';

/** Decides whether the sender of a callback is trusted. Gets `undefined` for an invalid callback. */
export type VerifySender<C> = (callback: C | undefined) => boolean | Promise<boolean>;

/** Resolves with `undefined` if the sender is trusted. Never rejects: a verifier that throws or is late refuses. */
export async function verifySender<C>(
  verify: VerifySender<C>,
  callback: C | undefined,
  timeoutMs: number,
): Promise<{ outcome: 'unauthorized'; error?: unknown } | undefined> {
  try {
    // Callers from JavaScript may return anything.
    const verdict: unknown = verify(callback);
    // A boolean verdict needs no deadline.
    const isTrusted =
      typeof verdict === 'boolean'
        ? verdict
        : await callWithin(
            timeoutMs,
            () => verdict,
            (ms) => new TransferCallbackError('VERIFY_TIMEOUT', `No verdict within ${ms} ms.`),
          );
    return isTrusted === true ? undefined : { outcome: 'unauthorized' };
  } catch (error) {
    return { outcome: 'unauthorized', error };
  }
}
