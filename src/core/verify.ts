import { invalidSecret } from '../lib/checks.js';
import { waitWithin } from '../lib/deadline.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import { toPrintable } from '../lib/text.js';
import type { CallbackShape } from './callback.js';
import { isRefused, Unreadable, type Refused } from './validate.js';
import type { Unauthorized } from './outcomes.js';
import type { Reading } from './payout-service.js';

/** Decides whether the sender of a callback is trusted. Gets `undefined` for all but a valid callback. */
export type VerifySender<C> = (callback: C | undefined) => boolean | Promise<boolean>;

export const verifyExample = 'verify: urlToken(process.env.CALLBACK_SECRET)';

/** Throws INVALID_ARGUMENT unless `verify` is a function or a list of at least one. */
export function requireVerifiers(verify: unknown): void {
  const verifiers = Array.isArray(verify) ? (verify as readonly unknown[]) : [verify];
  if (verifiers.length > 0 && verifiers.every((each) => typeof each === 'function')) return;
  const expected = 'a verifier, or a list of at least one';
  throw invalidSecret('verify', expected, verify, verifyExample);
}

const unread = new Unreadable('The sender was refused before the body was read.');

/** Returns the outcome of a sender that the host has refused before it read the body. */
export function refuseEarly(refused: Refused): Unauthorized {
  return { ...refuse(refused), issues: unread.issues };
}

function refuse({ by, error }: Partial<Refused>): Unauthorized {
  return {
    outcome: 'unauthorized',
    ...(by !== undefined && { refusedBy: toPrintable(by) }),
    ...(error !== undefined && { error }),
  };
}

/**
 * Resolves with the outcome of a refused sender, or with `undefined` if the sender is trusted. Never rejects: a
 * verifier that throws or is late refuses. The issues of the callback, if it has any, are for the log: after the
 * service renames a field that a verifier reads, they tell why every delivery is refused.
 */
export async function verifySender(
  verify: VerifySender<CallbackShape>,
  reading: Reading,
  timeoutMs: number,
): Promise<Unauthorized | undefined> {
  const isCallback = reading.kind === 'callback' && reading.fields.event !== 'other';
  const { issues, error } = reading.kind === 'invalid' ? reading : {};
  const unauthorized: Unauthorized = { ...refuse({ error }), ...(issues && { issues }) };
  try {
    // Callers from JavaScript may return anything.
    const given: unknown = verify(isCallback ? (reading.callback as CallbackShape) : undefined);
    // A boolean needs no deadline.
    const verdict = typeof given === 'boolean' ? given : await waitWithin(timeoutMs, given, lateVerdict);
    if (verdict === true) return undefined;
    return isRefused(verdict) ? { ...unauthorized, ...refuse(verdict) } : unauthorized;
  } catch (cause) {
    return { ...unauthorized, error: toReason(cause) };
  }
}

function lateVerdict(ms: number): TransferCallbackError {
  return new TransferCallbackError('VERIFY_TIMEOUT', `No verdict within ${ms} ms.`);
}
