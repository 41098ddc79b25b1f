import { setDeadline, type Timer } from '../lib/deadline.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import type { SafeLogger } from '../lib/logger.js';
import { AfterCommit } from './after-commit.js';
import type { CallbackShape } from './callback.js';
import type { ClaimParts } from './claim/call-store.js';
import { HeldClaim, type SettleEnding } from './claim/held-claim.js';
import type { LineEnd } from './claim/line.js';
import type { Lines } from './claim/lines.js';
import type { Delivery } from './delivery.js';
import type { HandlerContext, ResolvedOptions } from './options.js';
import type { Ending } from './outcomes.js';
import { report, type IgnoredNames } from './report.js';
import { isRetryLater } from './retry-later.js';
import { handleChannel, traceHandler } from './trace.js';

/** What all deliveries of a receiver share. Only its public methods know the types of callbacks and of `tx`. */
export interface ReceiverParts extends ClaimParts {
  readonly options: ResolvedOptions<CallbackShape, unknown> & { readonly logger: SafeLogger };
  readonly lines: Lines;
  readonly ignored: IgnoredNames;
  /** Whether the log has the warning about a handler that has not used `context.tx`. */
  hasWarnedOfTx: boolean;
  /** Whether the log has the warning about a `timestamp` that is not a time. */
  hasWarnedOfTime: boolean;
}

type Failure = Extract<Ending, { outcome: 'retry_later' | 'handler_failed' }>;

/** Runs the handler of a delivery that was granted its claim. Returns how any other delivery ends. */
export function handleClaimed(
  delivery: Delivery,
  claimed: HeldClaim | LineEnd,
  parts: ReceiverParts,
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
class HandlerRun {
  readonly #delivery: Delivery;
  readonly #claim: HeldClaim;
  readonly #parts: ReceiverParts;
  readonly #watched: WatchedClaim;
  readonly #afterCommit = new AfterCommit();
  #resolve!: (ending: Ending) => void;
  #isLate = false;

  constructor(delivery: Delivery, claim: HeldClaim, parts: ReceiverParts) {
    this.#delivery = delivery;
    this.#claim = claim;
    this.#parts = parts;
    this.#watched = new WatchedClaim(claim);
  }

  start(): Promise<Ending> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const ended = this.#run();
      if (this.#delivery.waitUntil === undefined) return;
      // A recording in the background may take days: what waits for it must not have this object, and its callback.
      const rest = ended.then(() => this.#claim.waitForRest(this.#afterCommit));
      keepProcess(this.#delivery, rest, this.#parts.options.logger);
    });
  }

  async #run(): Promise<void> {
    const ending = await this.#handleAndSettle();
    if (ending.outcome !== 'processed') await this.#claim.release();
    if (this.#isLate) report({ ...this.#delivery.toOutcome(ending), late: true }, this.#parts.options);
    else this.#resolve(ending);
  }

  async #handleAndSettle(): Promise<Failure | SettleEnding> {
    const cancelDeadline = setDeadline(this.#parts.options.handlerTimeoutMs, () => {
      this.#endLate();
    });
    const context = toContext(this.#delivery, this.#watched, (call) => {
      this.#afterCommit.add(call);
    });
    let failure: Failure | undefined;
    try {
      const handling = callHandler(this.#delivery, context, this.#parts);
      this.#watched.begin();
      await handling;
    } catch (error) {
      failure = isRetryLater(error)
        ? { outcome: 'retry_later', retryAfterMs: error.retryAfterMs, error }
        : { outcome: 'handler_failed', error: toReason(error) };
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
    const err = this.#watched.end();
    if (err === undefined || this.#parts.hasWarnedOfTx) return;
    this.#parts.hasWarnedOfTx = true;
    const { name, id } = this.#delivery;
    const message = 'A handler has not used `context.tx`; this is logged once.';
    this.#parts.options.logger.warn({ delivery: name, id, err }, message);
  }
}

function callHandler(
  delivery: Delivery,
  context: HandlerContext<unknown>,
  { options: { onSuccess, onFailed, onReversed, onOther } }: ReceiverParts,
): unknown {
  const { callback, event } = delivery;
  const handlers = {
    'transfer.success': onSuccess,
    'transfer.failed': onFailed,
    'transfer.reversed': onReversed,
    other: onOther,
  };
  const call = (): unknown => handlers[event]?.(callback as never, context);
  return handleChannel.start.hasSubscribers ? traceHandler(delivery, call) : call();
}

/** Asks the host to keep the process for the rest of the delivery. A host that refuses changes nothing else. */
function keepProcess({ name, id, waitUntil }: Delivery, rest: Promise<void>, logger: SafeLogger): void {
  const asked = new Promise((resolve) => {
    resolve(waitUntil?.(rest));
  });
  asked.catch((err: unknown) => {
    const message = '`waitUntil` threw; the host may end the process before this delivery is over.';
    logger.error({ delivery: name, id, err }, message);
  });
}

const watchedClaim = Symbol('transfer-callbacks:claim');

/** What the getters of a context read. Not enumerable: a copy of the context has the values in its place. */
interface WithClaim {
  readonly [watchedClaim]: WatchedClaim;
}

/**
 * One getter for all contexts: V8 makes a hidden class for each getter of a literal, and keeps it, with all that the
 * getter refers to, until its next major collection.
 */
const signal: PropertyDescriptor & ThisType<WithClaim> = {
  enumerable: true,
  get() {
    return this[watchedClaim].claim.signal;
  },
};
const tx: PropertyDescriptor & ThisType<WithClaim> = {
  enumerable: true,
  get() {
    return this[watchedClaim].useTx();
  },
};

/** Makes the context of a handler. A signal that it does not read costs nothing. */
function toContext(
  { name, source }: Delivery,
  claim: WatchedClaim,
  afterCommit: HandlerContext['afterCommit'],
): HandlerContext<unknown> {
  const context = { delivery: name, source, afterCommit };
  Object.defineProperty(context, watchedClaim, { value: claim });
  // One by one, which takes half as long as both at once.
  Object.defineProperty(context, 'signal', signal);
  return Object.defineProperty(context, 'tx', tx) as unknown as HandlerContext<unknown>;
}

const unusedTx =
  'The handler has waited for something and not used `context.tx`: its writes are not committed with the record, and each of ' +
  'its queries needs another connection of the pool';

/** The claim under which a handler runs, and whether the handler has used its transaction. */
class WatchedClaim {
  readonly claim: HeldClaim;
  #isUsed = false;
  #hasWaited = false;
  #turn: Timer | undefined;

  constructor(claim: HeldClaim) {
    this.claim = claim;
  }

  /** Notes from now on whether the handler waits. Most handlers have used `tx` by then, and cost no timer. */
  begin(): void {
    if (this.#isUsed || !this.claim.isTransactional) return;
    this.#turn = setTimeout(() => {
      this.#hasWaited = true;
    }, 0);
  }

  useTx(): unknown {
    this.#isUsed = true;
    return this.claim.tx;
  }

  /**
   * Ends the watch. Returns the error of a handler that has not used `tx`. One that waits for nothing only
   * acknowledges.
   */
  end(): TransferCallbackError | undefined {
    clearTimeout(this.#turn);
    if (this.#isUsed || !this.#hasWaited) return undefined;
    return new TransferCallbackError('HANDLER_WITHOUT_TX', unusedTx);
  }
}
