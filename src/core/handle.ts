import { setDeadline } from '../lib/deadline.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import { AfterCommit } from './after-commit.js';
import type { CallbackShape, EventShape, OtherEvent } from './callback.js';
import { HeldClaim, type SettleEnding } from './claim/held-claim.js';
import type { LineEnd } from './claim/line.js';
import { toContext, WatchedTx } from './context.js';
import type { Delivery } from './delivery.js';
import type { HandlerContext } from './options.js';
import type { Ending } from './outcomes.js';
import type { ReceiverParts } from './parts.js';
import { report } from './report.js';
import { isRetryLater } from './retry-later.js';
import { traceHandler } from './trace.js';

/** How a delivery can end after its handler has thrown. */
type Failure = Extract<Ending, { outcome: 'retry_later' | 'handler_failed' }>;
/** How a run of the handler can end. */
type RunEnding = Failure | SettleEnding;

/** Runs the handler of a delivery that was granted its claim. Returns how any other delivery ends. */
export function handleClaimed<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  claimed: HeldClaim<Tx> | LineEnd,
  parts: ReceiverParts<C, Tx>,
): Ending | Promise<Ending> {
  if (claimed instanceof HeldClaim) return new HandlerRun(delivery, claimed, parts).start();
  switch (claimed.state) {
    case 'handled':
      return delivery.compareWith(claimed.fingerprint);
    case 'unavailable':
      return { outcome: 'store_unavailable', error: claimed.error };
    case 'in_progress':
    case 'closing':
      return { outcome: claimed.state };
  }
}

/**
 * Runs the handler while the claim is held, and settles or releases the claim afterwards. On timeout it resolves with
 * `timed_out`, and holds the claim until the handler finishes; then it reports the second ending. Never rejects.
 */
class HandlerRun<C extends CallbackShape, Tx> {
  readonly #delivery: Delivery<C | OtherEvent>;
  readonly #claim: HeldClaim<Tx>;
  readonly #parts: ReceiverParts<C, Tx>;
  readonly #watched: WatchedTx<Tx> | undefined;
  readonly #afterCommit = new AfterCommit();
  #resolve!: (ending: Ending) => void;
  #isLate = false;

  constructor(delivery: Delivery<C | OtherEvent>, claim: HeldClaim<Tx>, parts: ReceiverParts<C, Tx>) {
    this.#delivery = delivery;
    this.#claim = claim;
    this.#parts = parts;
    this.#watched = claim.isTransactional ? new WatchedTx(claim.tx) : undefined;
  }

  start(): Promise<Ending> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const ended = this.#run();
      if (this.#delivery.waitUntil === undefined) return;
      // A recording in the background may take days: what waits for it must not have this object, and its callback.
      const rest = ended.then(() => waitForRest(this.#claim, this.#afterCommit));
      keepProcess(this.#delivery, rest, this.#parts.options);
    });
  }

  async #run(): Promise<void> {
    const ending = await this.#handleAndSettle();
    if (ending.outcome !== 'processed') await this.#claim.release();
    if (this.#isLate) report({ ...this.#delivery.toOutcome(ending), late: true }, this.#parts.options);
    else this.#resolve(ending);
  }

  async #handleAndSettle(): Promise<RunEnding> {
    const cancelDeadline = setDeadline(this.#parts.options.handlerTimeoutMs, () => {
      this.#endLate();
    });
    const context = toContext(this.#delivery, this.#claim, this.#watched, (call) => {
      this.#afterCommit.add(call);
    });
    let failure: Failure | undefined;
    try {
      const handling = callHandler(this.#delivery, context, this.#parts);
      this.#watched?.beginWatch();
      await handling;
    } catch (error) {
      failure = toFailure(error);
    }
    this.#afterCommit.close();
    cancelDeadline();
    if (failure !== undefined) return failure;
    this.#warnOfUnusedTx();
    return this.#claim.settle(this.#afterCommit);
  }

  #endLate(): void {
    this.#isLate = true;
    const message = `The handler did not finish within ${this.#parts.options.handlerTimeoutMs} ms.`;
    const error = new TransferCallbackError('HANDLER_TIMEOUT', message);
    this.#resolve({ outcome: 'timed_out', error });
    this.#claim.abort(error);
    this.#warnOfUnusedTx();
  }

  /** Warns once for each receiver. */
  #warnOfUnusedTx(): void {
    const err = this.#watched?.endWatch();
    if (err === undefined || this.#parts.hasWarnedOfTx) return;
    this.#parts.hasWarnedOfTx = true;
    const { name, id } = this.#delivery;
    const message = 'A handler has not used `context.tx`; this is logged once.';
    this.#parts.options.logger.warn({ delivery: name, id, err }, message);
  }
}

/** Calls the handler of the event. */
function callHandler<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  context: HandlerContext<Tx>,
  { options: { onSuccess, onFailed, onReversed, onOther } }: ReceiverParts<C, Tx>,
): unknown {
  const { callback, event } = delivery;
  const handlers = {
    'transfer.success': onSuccess,
    'transfer.failed': onFailed,
    'transfer.reversed': onReversed,
    other: onOther,
  } as Readonly<Record<EventShape['event'], Handler<Tx> | undefined>>;
  return traceHandler(delivery, () => handlers[event]?.(callback, context));
}

type Handler<Tx> = (callback: EventShape, context: HandlerContext<Tx>) => unknown;

function toFailure(error: unknown): Failure {
  return isRetryLater(error)
    ? { outcome: 'retry_later', retryAfterMs: error.retryAfterMs, error }
    : { outcome: 'handler_failed', error: toReason(error) };
}

async function waitForRest<Tx>(claim: HeldClaim<Tx>, afterCommit: AfterCommit): Promise<void> {
  // First: a recording in the background starts the functions of `afterCommit` at its end.
  await claim.recording;
  await afterCommit.ended;
}

/** Asks the host to keep the process for the rest of the delivery. A host that refuses changes nothing else. */
function keepProcess<C extends CallbackShape, Tx>(
  { name, id, waitUntil }: Delivery,
  rest: Promise<void>,
  { logger }: ReceiverParts<C, Tx>['options'],
): void {
  const asked = new Promise((resolve) => {
    resolve(waitUntil?.(rest));
  });
  asked.catch((err: unknown) => {
    const message = '`waitUntil` threw; the host may end the process before this delivery is over.';
    logger.error({ delivery: name, id, err }, message);
  });
}
