import type { CallbackFor, CallbackShape } from './callback.js';
import { setDeadline } from './deadline.js';
import type { Delivery } from './delivery.js';
import { TransferCallbackError } from './errors.js';
import type { HeldLease } from './held-lease.js';
import type { HandlerContext, ResolvedOptions } from './options.js';
import type { Ending } from './outcomes.js';
import { report } from './report.js';
import { isRetryLater } from './retry-later.js';
import { handleChannel, traceHandler } from './trace.js';

/** How a delivery can end after its handler has thrown. */
type Failure = Extract<Ending, { outcome: 'retry_later' | 'handler_failed' }>;

/**
 * Runs the handler under its lease, and settles or releases the lease afterwards. On timeout it resolves with
 * `timed_out`, and holds the lease until the handler finishes; then it reports the second ending. Never rejects.
 */
export function handleCallback<C extends CallbackShape, Tx>(
  callback: C,
  delivery: Delivery<C>,
  lease: HeldLease<Tx>,
  options: ResolvedOptions<C, Tx>,
): Promise<Ending> {
  const { signal, tx } = lease;
  const context = { delivery: delivery.name, source: delivery.source, signal, tx };
  return new Promise((resolve) => {
    let end: (ending: Ending) => void = resolve;
    const cancelDeadline = setDeadline(options.handlerTimeoutMs, () => {
      end = (ending) => {
        report({ ...delivery.toOutcome(ending), late: true }, options);
      };
      const message = `The handler did not finish within ${options.handlerTimeoutMs} ms.`;
      const error = new TransferCallbackError('HANDLER_TIMEOUT', message);
      resolve({ outcome: 'timed_out', error });
      lease.abort(error);
    });
    void (async () => {
      let failure: Failure | undefined;
      try {
        await (handleChannel.start.hasSubscribers
          ? traceHandler(delivery, () => callHandler(callback, context, options))
          : callHandler(callback, context, options));
      } catch (error) {
        failure = toFailure(error);
      }
      cancelDeadline();
      if (failure === undefined) {
        end(await lease.settle());
      } else {
        await lease.release();
        end(failure);
      }
    })();
  });
}

function callHandler<C extends CallbackShape, Tx>(
  callback: C,
  context: HandlerContext<Tx>,
  { onSuccess, onFailed }: ResolvedOptions<C, Tx>,
): unknown {
  return callback.event === 'transfer.success'
    ? onSuccess(callback as unknown as CallbackFor<C, 'transfer.success'>, context)
    : onFailed(callback as unknown as CallbackFor<C, 'transfer.failed'>, context);
}

function toFailure(error: unknown): Failure {
  return isRetryLater(error)
    ? { outcome: 'retry_later', retryAfterMs: error.retryAfterMs, error }
    : { outcome: 'handler_failed', error };
}
