import { AsyncResource } from 'node:async_hooks';
import type { CallbackShape } from './callback.js';
import type { Delivery } from './delivery.js';
import { TransferCallbackError } from './errors.js';
import { toFingerprint } from './facts.js';
import type { InFlight } from './in-flight.js';
import type { ReceiverOptions } from './options.js';
import type { Ending } from './outcome.js';
import type { TimerQueue } from './timers.js';
import { confirmChannel, traceConfirm } from './trace.js';

type Confirm<C extends CallbackShape> = NonNullable<ReceiverOptions<C>['confirm']>;

/**
 * Calls `confirm` and resolves with the callback that it returns, or with how the delivery ends: `closing` if the
 * receiver closes, and `unconfirmed` if `confirm` throws or is late, or if the id, event or facts differ. Never rejects.
 */
export async function confirmCallback<C extends CallbackShape>(
  delivery: Delivery<C>,
  confirm: Confirm<C>,
  deadlines: TimerQueue,
  inFlight: InFlight,
): Promise<{ callback: C } | Ending> {
  const controller = new AbortController();
  const { signal } = controller;
  // Abort listeners run in the async context of this delivery, although the timer is shared.
  const abort = AsyncResource.bind((reason: Error) => {
    controller.abort(reason);
  });
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
  const abortable = { id: delivery.id, abort, finish: () => undefined };
  const timer = deadlines.set(() => {
    abort(new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not finish within ${deadlines.ms} ms.`));
  });
  inFlight.add(abortable);
  try {
    const { callback, name, source } = delivery;
    const context = { delivery: name, source, signal };
    const confirming = confirmChannel.start.hasSubscribers
      ? traceConfirm(delivery, () => confirm(callback, context))
      : confirm(callback, context);
    return { callback: requireSameFacts(await Promise.race([confirming, aborted]), delivery) };
  } catch (error) {
    const isClosing = error instanceof TransferCallbackError && error.code === 'CLOSING';
    // Stryker disable next-line ObjectLiteral: Equal: the claim of a closed receiver ends as `closing` too.
    return isClosing ? { outcome: 'closing' } : { outcome: 'unconfirmed', error };
  } finally {
    deadlines.clear(timer);
    inFlight.remove(abortable);
  }
}

/** Returns `confirmed` if it has the same id, event and facts; throws UNCONFIRMED otherwise. */
function requireSameFacts<C extends CallbackShape>(
  confirmed: C | undefined,
  { id, event, fingerprint }: Delivery<C>,
): C {
  // Callers from JavaScript may return anything.
  const { data } = (confirmed ?? {}) as { data?: CallbackShape['data'] };
  if (confirmed?.event === event && data?.id === id && toFingerprint(confirmed) === fingerprint) return confirmed;
  throw new TransferCallbackError(
    'UNCONFIRMED',
    'Expected `confirm` to return a callback with the same id, event and facts; they differ.',
  );
}
