import { AsyncResource } from 'node:async_hooks';
import { deadlineSignal, withDeadline } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';
import type { CallbackShape } from './callback.js';
import type { Delivery } from './delivery.js';
import { toFingerprint } from './facts.js';
import type { InFlight } from './in-flight.js';
import type { ReceiverOptions } from './options.js';
import type { Ending } from './outcomes.js';
import { traceConfirm } from './trace.js';

type Confirm<C extends CallbackShape> = NonNullable<ReceiverOptions<C>['confirm']>;

/**
 * Calls `confirm` and resolves with the callback that it returns, or with how the delivery ends: `closing` if the
 * receiver closes, and `unconfirmed` if `confirm` throws or is late, or if the id, event or facts differ. Never rejects.
 */
export async function confirmCallback<C extends CallbackShape>(
  delivery: Delivery<C>,
  confirm: Confirm<C>,
  timeoutMs: number,
  inFlight: InFlight,
): Promise<{ callback: C } | Ending> {
  const closing = new AbortController();
  // Abort listeners run in the async context of this delivery, although `close` aborts all deliveries.
  const abort = AsyncResource.bind((reason: Error) => {
    closing.abort(reason);
  });
  const work = { id: delivery.id, abort };
  const deadline = deadlineSignal(
    timeoutMs,
    closing.signal,
    () => new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not finish within ${timeoutMs} ms.`),
  );
  inFlight.add(work);
  try {
    const { callback, name, source } = delivery;
    const confirmed = await withDeadline(deadline, (signal) =>
      traceConfirm(delivery, () => confirm(callback, { delivery: name, source, signal })),
    );
    return { callback: requireSameFacts(confirmed, delivery) };
  } catch (error) {
    const isClosing = error instanceof TransferCallbackError && error.code === 'CLOSING';
    return isClosing ? { outcome: 'closing' } : { outcome: 'unconfirmed', error };
  } finally {
    inFlight.remove(work);
  }
}

/** Returns `confirmed` if it has the same id, event and facts; throws UNCONFIRMED otherwise. */
function requireSameFacts<C extends CallbackShape>(
  confirmed: C | undefined,
  { id, event, fingerprint }: Delivery<C>,
): C {
  // Callers from JavaScript may return anything.
  const { data } = (confirmed ?? {}) as { data?: CallbackShape['data'] };
  if (confirmed?.event === event && data?.id === id && toFingerprint(data) === fingerprint) return confirmed;
  throw new TransferCallbackError(
    'UNCONFIRMED',
    'Expected `confirm` to return a callback with the same id, event and facts; they differ.',
  );
}
