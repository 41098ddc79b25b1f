import { AsyncResource } from 'node:async_hooks';
import type { CallbackShape } from './callback.js';
import { TransferCallbackError } from './errors.js';
import { requireSameFacts } from './facts.js';
import type { InFlight } from './in-flight.js';
import type { ReceiverOptions } from './options.js';
import type { ReceivedCallback } from './received-callback.js';
import type { TimerQueue } from './timers.js';
import { confirmChannel, traceConfirm } from './trace.js';

type Confirm<C extends CallbackShape> = NonNullable<ReceiverOptions<C>['confirm']>;

/**
 * Calls `confirm` and resolves with the callback it returns. Rejects with what it throws, with UNCONFIRMED if the id,
 * event or facts differ, with CONFIRM_TIMEOUT, or with CLOSING.
 */
export async function confirmCallback<C extends CallbackShape>(
  received: ReceivedCallback<C>,
  { confirm, confirmTimeoutMs }: { confirm: Confirm<C>; confirmTimeoutMs: number },
  deadlines: TimerQueue,
  inFlight: InFlight,
): Promise<C> {
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
  const abortable = { id: received.id, abort, finish: () => undefined };
  const timer = deadlines.set(() => {
    abort(new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not settle within ${confirmTimeoutMs} ms.`));
  });
  inFlight.add(abortable);
  try {
    const { callback, token: delivery, source } = received;
    const context = { delivery, source, signal };
    const confirming = confirmChannel.start.hasSubscribers
      ? traceConfirm(received, () => confirm(callback, context))
      : confirm(callback, context);
    return requireSameFacts(await Promise.race([confirming, aborted]), received);
  } finally {
    deadlines.clear(timer);
    inFlight.remove(abortable);
  }
}
