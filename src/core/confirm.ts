import { TransferCallbackError, toReason } from '../lib/errors.js';
import type { CallbackShape } from './callback.js';
import type { Delivery } from './delivery.js';
import { haveSameFacts, toFingerprint } from './facts.js';
import { isClosing, type InFlight } from './in-flight.js';
import type { Confirm } from './options.js';
import type { Ending } from './outcomes.js';
import { traceConfirm } from './trace.js';

/**
 * Calls `confirm` and resolves with the callback that it returns, or with how the delivery ends: `closing` if the
 * receiver closes, and `unconfirmed` if `confirm` throws or is late, or if the id, event or facts differ. Never
 * rejects.
 */
export async function confirmCallback<C extends CallbackShape>(
  delivery: Delivery<C>,
  confirm: Confirm<C>,
  timeoutMs: number,
  inFlight: InFlight,
): Promise<{ callback: C } | Ending> {
  const { callback, id, name, source } = delivery;
  const lateError = () =>
    new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not finish within ${timeoutMs} ms.`);
  try {
    const confirmed = await inFlight.call(id, timeoutMs, lateError, (signal) =>
      traceConfirm(delivery, () => confirm(callback, { delivery: name, source, signal })),
    );
    return { callback: requireSameFacts(confirmed, delivery) };
  } catch (error) {
    return isClosing(error) ? { outcome: 'closing' } : { outcome: 'unconfirmed', error: toReason(error) };
  }
}

/** Returns `confirmed` if it has the same id, event and facts; throws UNCONFIRMED otherwise. */
function requireSameFacts<C extends CallbackShape>(confirmed: C | undefined, { id, event, fingerprint }: Delivery): C {
  // Callers from JavaScript may return anything.
  const { data } = (confirmed ?? {}) as { data?: CallbackShape['data'] };
  if (confirmed?.event === event && data?.id === id && haveSameFacts(toFingerprint(data), fingerprint)) {
    return confirmed;
  }
  throw new TransferCallbackError(
    'UNCONFIRMED',
    'Expected `confirm` to return a callback with the same id, event and facts; they differ.',
  );
}
