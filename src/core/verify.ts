import { callWithin } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';
import { isUnreadable, type Refusal } from './callback.js';
import type { CallbackFields } from './fields.js';
import type { Invalid, Unauthorized } from './outcomes.js';

/** Decides whether the sender of a callback is trusted. Gets `undefined` for all but a valid callback. */
export type VerifySender<C> = (callback: C | undefined) => boolean | Promise<boolean>;

/**
 * Resolves with the outcome of a refused sender, or with `undefined` if the sender is trusted. Never rejects: a verifier
 * that throws or is late refuses. The issues of the callback, if it has any, are for the log: after the service renames a
 * field that a verifier reads, they tell why every delivery is refused.
 */
export async function verifySender<C>(
  verify: VerifySender<C>,
  input: unknown,
  validated: { readonly callback: unknown; readonly fields: CallbackFields } | Pick<Invalid, 'issues' | 'error'>,
  timeoutMs: number,
): Promise<Unauthorized | undefined> {
  const early = isUnreadable(input) ? input.refusal : undefined;
  const isCallback = 'callback' in validated && validated.fields.event !== 'other';
  const refusal = early ?? (await findRefusal(verify, isCallback ? (validated.callback as C) : undefined, timeoutMs));
  if (refusal === undefined) return undefined;
  const { issues, error } = 'issues' in validated ? validated : {};
  return {
    outcome: 'unauthorized',
    ...(issues && { issues }),
    ...(error !== undefined && { error }),
    ...refusal,
  };
}

async function findRefusal<C>(
  verify: VerifySender<C>,
  callback: C | undefined,
  timeoutMs: number,
): Promise<Refusal | undefined> {
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
    return isTrusted === true ? undefined : {};
  } catch (error) {
    return { error };
  }
}
