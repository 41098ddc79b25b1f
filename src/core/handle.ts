import { setDeadline } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';
import type { CallbackFor, CallbackShape } from './callback.js';
import type { Delivery } from './delivery.js';
import type { HeldLease } from './lease.js';
import type { HandlerContext, ResolvedOptions } from './options.js';
import type { Ending } from './outcomes.js';
import { report } from './report.js';
import { isRetryLater } from './retry-later.js';
import { handleChannel, traceHandler } from './trace.js';

/** How a delivery can end after its handler has thrown. */
type Failure = Extract<Ending, { outcome: 'retry_later' | 'handler_failed' }>;

/**
 * Runs the handler under its lease, and settles or releases the lease afterwards. On timeout it resolves with
 * `timed_out`, and holds the lease until the handler finishes; then it reports the second ending. If the receiver was
 * closed before, it only releases the lease. Never rejects.
 */
export async function handleCallback<C extends CallbackShape, Tx>(
  callback: C,
  delivery: Delivery<C>,
  lease: HeldLease<Tx>,
  isClosed: boolean,
  options: ResolvedOptions<C, Tx>,
): Promise<Ending> {
  if (isClosed) {
    await lease.release();
    return { outcome: 'closing' };
  }
  return new Promise((resolve) => {
    let isLate = false as boolean; // TypeScript does not see that the deadline sets it.
    const cancelDeadline = setDeadline(options.handlerTimeoutMs, () => {
      isLate = true;
      const message = `The handler did not finish within ${options.handlerTimeoutMs} ms.`;
      const error = new TransferCallbackError('HANDLER_TIMEOUT', message);
      resolve({ outcome: 'timed_out', error });
      lease.abort(error);
    });
    void (async () => {
      const failure = await runHandler(callback, delivery, lease, options);
      cancelDeadline();
      if (failure !== undefined) await lease.release();
      const ending = failure ?? (await lease.settle());
      if (isLate) report({ ...delivery.toOutcome(ending), late: true }, options);
      else resolve(ending);
    })();
  });
}

/** Calls the handler. Resolves with how it failed, or with `undefined`. */
async function runHandler<C extends CallbackShape, Tx>(
  callback: C,
  delivery: Delivery<C>,
  { signal, tx }: HeldLease<Tx>,
  options: ResolvedOptions<C, Tx>,
): Promise<Failure | undefined> {
  const context = { delivery: delivery.name, source: delivery.source, signal, tx };
  const call = () => callHandler(callback, context, options);
  try {
    await (handleChannel.start.hasSubscribers ? traceHandler(delivery, call) : call());
    return undefined;
  } catch (error) {
    return toFailure(error);
  }
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
