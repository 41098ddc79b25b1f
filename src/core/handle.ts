import { Deadline, pause } from '../lib/deadline.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import { AfterCommit } from './after-commit.js';
import type { CallbackFor, CallbackShape, OtherEvent } from './callback.js';
import { HeldClaim, type SettleEnding } from './claim/held-claim.js';
import type { LineEnd } from './claim/line.js';
import { toContext } from './context.js';
import type { Delivery } from './delivery.js';
import { WatchedTx } from './watched-tx.js';
import type { HandlerContext, ResolvedOptions } from './options.js';
import type { Ending } from './outcomes.js';
import { report } from './report.js';
import { isRetryLater } from './retry-later.js';
import { traceHandler } from './trace.js';

/** How a delivery can end after its handler has thrown. */
type Failure = Extract<Ending, { outcome: 'retry_later' | 'handler_failed' }>;
/** How a run of the handler can end. */
type RunEnding = Failure | SettleEnding;

/**
 * A handler that runs again pauses before: at most so long the first time, and at most twice as long each time after
 * that.
 */
const firstPauseMs = 20;
const longestPauseMs = 1_000;

/** Runs the handler of a delivery that was granted its claim. Returns how any other delivery ends. */
export function handleClaimed<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  claimed: HeldClaim<Tx> | LineEnd,
  options: ResolvedOptions<C, Tx>,
): Ending | Promise<Ending> {
  if (claimed instanceof HeldClaim) return runHandler(delivery, claimed, options);
  switch (claimed.state) {
    case 'settled':
      return delivery.compareWith(claimed.fingerprint);
    case 'unavailable':
      return { outcome: 'store_unavailable', error: claimed.error };
    case 'in_progress':
    case 'closing':
      return { outcome: claimed.state };
  }
}

/**
 * Runs the handler while the claim is held, and settles or releases the claim afterwards. While its database gives up
 * its transaction for another one, it runs again within its time. On timeout it resolves with `timed_out`, and holds
 * the claim until the handler finishes; then it reports the second ending. `onEnd` is called before an ending is
 * reported, with whether the success was recorded. Never rejects.
 */
export function runHandler<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  claim: HeldClaim<Tx>,
  options: ResolvedOptions<C, Tx>,
  onEnd?: (hasSucceeded: boolean) => Promise<void>,
): Promise<Ending> {
  const endsAt = performance.now() + options.handlerTimeoutMs;
  delivery.endWait();
  return new Promise((resolve) => {
    let isLate = false;
    let afterCommit: AfterCommit;
    const run = async (): Promise<RunEnding> => {
      const watched = claim.isTransactional ? new WatchedTx(claim.tx) : undefined;
      const onDue = (): void => {
        isLate = true;
        const message = `The handler did not finish within ${options.handlerTimeoutMs} ms.`;
        const error = new TransferCallbackError('HANDLER_TIMEOUT', message);
        resolve({ outcome: 'timed_out', error });
        claim.abort(error);
        warnOfUnusedTx(watched, delivery, options);
      };
      const deadline = new Deadline({ onDue }, endsAt - performance.now());
      const added = new AfterCommit();
      afterCommit = added;
      // A context of an earlier run must not add to a later one.
      const context = toContext(delivery, claim, watched, (call) => {
        added.add(call);
      });
      const handling = callHandler(delivery, context, options);
      watched?.beginWatch();
      const failure = await handling;
      afterCommit.close();
      deadline.cancel();
      if (failure === undefined) warnOfUnusedTx(watched, delivery, options);
      return failure ?? (await claim.settle(afterCommit));
    };
    const runAndReport = async (): Promise<void> => {
      const ending = await runUntilEnded(run, claim, endsAt);
      if (ending.outcome !== 'processed') await claim.release();
      if (onEnd !== undefined) await onEnd(ending.outcome === 'processed');
      if (isLate) report({ ...delivery.toOutcome(ending), late: true }, options);
      else resolve(ending);
    };
    const work = runAndReport();
    if (delivery.waitUntil === undefined) return;
    const rest = work.then(async () => {
      // First: a recording in the background starts the functions of `afterCommit` at its end.
      await claim.recording;
      await afterCommit.ended;
    });
    keepProcess(delivery, rest, options);
  });
}

/** Runs the handler, and again while its store allows that, after pauses that grow. */
async function runUntilEnded<Tx>(
  run: () => Promise<RunEnding>,
  claim: HeldClaim<Tx>,
  endsAt: number,
): Promise<RunEnding> {
  for (let limitMs = firstPauseMs; ; limitMs = Math.min(2 * limitMs, longestPauseMs)) {
    const ending = await run();
    if (ending.outcome === 'processed') return ending;
    // At random: two handlers that have met would meet again.
    if (!(await mayRunAgain(claim, ending.error, Math.random() * limitMs, endsAt))) return ending;
  }
}

/**
 * Begins the transaction of the handler anew, if its store allows that, and pauses. Resolves with whether there is time
 * left.
 */
async function mayRunAgain<Tx>(
  claim: HeldClaim<Tx>,
  error: unknown,
  pauseMs: number,
  endsAt: number,
): Promise<boolean> {
  if (!(await claim.restart(error)) || performance.now() + pauseMs >= endsAt) return false;
  await pause(pauseMs, { signal: claim.signal });
  return !claim.isAborted;
}

/** Asks the host to keep the process for the rest of the delivery. A host that refuses changes nothing else. */
function keepProcess<C extends CallbackShape, Tx>(
  { name, id, waitUntil }: Delivery,
  rest: Promise<void>,
  { logger }: ResolvedOptions<C, Tx>,
): void {
  const asked = new Promise((resolve) => {
    resolve(waitUntil?.(rest));
  });
  asked.catch((err: unknown) => {
    const message = '`waitUntil` threw; the host may end the process before this delivery is over.';
    logger.error({ delivery: name, id, err }, message);
  });
}

/** Calls the handler. Resolves with how it failed, or with `undefined`. */
async function callHandler<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  context: HandlerContext<Tx>,
  { onSuccess, onFailed, onReversed, onOther }: ResolvedOptions<C, Tx>,
): Promise<Failure | undefined> {
  const { callback } = delivery;
  try {
    await traceHandler(delivery, () => {
      switch (delivery.event) {
        case 'transfer.success':
          return onSuccess(callback as unknown as CallbackFor<C, 'transfer.success'>, context);
        case 'transfer.failed':
          return onFailed(callback as unknown as CallbackFor<C, 'transfer.failed'>, context);
        case 'transfer.reversed':
          return onReversed?.(callback as CallbackShape, context);
        case 'other':
          return onOther?.(callback as OtherEvent, context);
      }
    });
    return undefined;
  } catch (error) {
    return toFailure(error);
  }
}

const named = new WeakSet<object>();

/** Warns once for each receiver. */
function warnOfUnusedTx<C extends CallbackShape, Tx>(
  watched: WatchedTx<Tx> | undefined,
  { name, id }: Delivery,
  options: ResolvedOptions<C, Tx>,
): void {
  const err = watched?.endWatch();
  if (err === undefined || named.has(options)) return;
  named.add(options);
  options.logger.warn({ delivery: name, id, err }, 'A handler has not used `context.tx`; this is logged once.');
}

function toFailure(error: unknown): Failure {
  return isRetryLater(error)
    ? { outcome: 'retry_later', retryAfterMs: error.retryAfterMs, error }
    : { outcome: 'handler_failed', error: toReason(error) };
}
