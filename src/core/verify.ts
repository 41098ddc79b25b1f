import { callWithin } from '../lib/deadline.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import type { CallbackFields } from './fields.js';
import type { Refused } from './input.js';
import type { Invalid, Unauthorized } from './outcomes.js';

/** Decides whether the sender of a callback is trusted. Gets `undefined` for all but a valid callback. */
export type VerifySender<C> = (callback: C | undefined) => boolean | Promise<boolean>;

const refusedEarly = Object.freeze([
  Object.freeze({ path: Object.freeze([]), message: 'The sender was refused before the body was read.' }),
]);

/** Returns the outcome of a sender that the host has refused. */
export function refuseEarly({ error }: Refused): Unauthorized {
  return { outcome: 'unauthorized', issues: refusedEarly, ...(error !== undefined && { error }) };
}

/**
 * Resolves with the outcome of a refused sender, or with `undefined` if the sender is trusted. Never rejects: a
 * verifier that throws or is late refuses. The issues of the callback, if it has any, are for the log: after the
 * service renames a field that a verifier reads, they tell why every delivery is refused.
 */
export async function verifySender<C>(
  verify: VerifySender<C>,
  validated: { readonly callback: unknown; readonly fields: CallbackFields } | Pick<Invalid, 'issues' | 'error'>,
  timeoutMs: number,
): Promise<Unauthorized | undefined> {
  const isCallback = 'callback' in validated && validated.fields.event !== 'other';
  const { issues, error } = 'issues' in validated ? validated : {};
  const unauthorized: Unauthorized = {
    outcome: 'unauthorized',
    ...(issues && { issues }),
    ...(error !== undefined && { error }),
  };
  try {
    const isTrusted = await callVerify(verify, isCallback ? (validated.callback as C) : undefined, timeoutMs);
    return isTrusted ? undefined : unauthorized;
  } catch (cause) {
    return { ...unauthorized, error: toReason(cause) };
  }
}

async function callVerify<C>(verify: VerifySender<C>, callback: C | undefined, timeoutMs: number): Promise<boolean> {
  // Callers from JavaScript may return anything.
  const verdict: unknown = verify(callback);
  // A boolean verdict needs no deadline.
  if (typeof verdict === 'boolean') return verdict;
  const late = (ms: number) => new TransferCallbackError('VERIFY_TIMEOUT', `No verdict within ${ms} ms.`);
  return (await callWithin(timeoutMs, () => verdict, late)) === true;
}
