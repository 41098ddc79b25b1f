import { announce } from './announce.js';
import {
  fingerprintOf,
  requireCallback,
  requireSameFacts,
  type CallbackShape,
  type TransferCallback,
} from './callback.js';
import { deadlines, storeDeadline } from './deadlines.js';
import { isRetryLater, TransferCallbackError, wholeNumber } from './errors.js';
import { holdLease, type Hold } from './hold.js';
import {
  renewalsPerLease,
  resolveReceiverOptions,
  type HandlerContext,
  type ReceiverOptions,
  type ResolvedOptions,
} from './options.js';
import type { Ended, Ending, Invalid, Issue, TransferCallbackOutcome } from './outcome.js';
import type { Claim, Lease } from './store.js';
import { pause } from './timing.js';

/** What `receive` is told beside the callback. */
export interface Delivery<C extends CallbackShape = TransferCallback> {
  /** Who brings the callback, for the handler and `onOutcome`. Default `direct`. */
  source?: string | undefined;
  /**
   * Says whether the sender is to be believed; the delivery is `unauthorized` if not, or if it throws. Asked after
   * validation, and for an invalid callback too (then without it), so that a stranger learns nothing.
   */
  admit?: ((callback: C | undefined) => boolean | Promise<boolean>) | undefined;
  /** For an edge that could not read a callback at all: why. The delivery is `invalid` with these issues. */
  unreadable?: readonly Issue[] | undefined;
}

/** Receives callbacks from wherever they come and acts on each once. */
export interface TransferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined> {
  /**
   * Validates the callback, claims it, runs the handler and settles. Never rejects: the answer says how it ended,
   * and only `processed` and `duplicate` mean that the handler has succeeded.
   */
  receive(callback: unknown, delivery?: Delivery<C>): Promise<TransferCallbackOutcome>;
  /**
   * From now on deliveries end as `closing`. Waits for the running ones; after `timeoutMs` (default 10 000) aborts
   * their signals and waits at most `storeTimeoutMs` more for those that heed it. What is still unfinished then is
   * left to its lease: it becomes free within `leaseMs`. Answers how many those are.
   */
  close(options?: { timeoutMs?: number }): Promise<{ unfinished: number }>;
  /** Whether `close` has begun. */
  readonly closing: boolean;
  /** The options as they apply. */
  readonly options: Readonly<ResolvedOptions<C, Tx>>;
}

/** How the handler itself ended. */
type Handled =
  { outcome: 'processed' } | Extract<Ending, { outcome: 'unconfirmed' | 'retry_later' | 'handler_failed' }>;

const firstPauseMs = 50;
const longestPauseMs = 1_000;

/**
 * Makes the receiver: what happens to a callback, without HTTP. Give it to `transferCallbackRouter`, and use the same
 * one for reconciliation, a queue worker or a replay by hand, so that all of them share one record of what was done.
 * Throws INVALID_OPTION.
 */
export function transferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined>(
  given: ReceiverOptions<C, Tx>,
): TransferCallbackReceiver<C, Tx> {
  const options = resolveReceiverOptions(given);
  const { store, schema, confirm, logger, inFlightWaitMs, leaseMs, handlerTimeoutMs, storeTimeoutMs, retentionMs } =
    options;
  if (store.processLocal === true && process.env.NODE_ENV === 'production') {
    logger.warn({}, 'Transfer callbacks are deduplicated within this process only: production wants a shared store.');
  }
  const withinStoreDeadline = storeDeadline(storeTimeoutMs);
  const handlerDeadlines = deadlines(handlerTimeoutMs);
  // A heartbeat alone keeps no process alive.
  const heartbeats = deadlines(leaseMs / renewalsPerLease, { keepAlive: false });
  const terms = { options, heartbeats, withinStoreDeadline };
  // A Set would keep every table that it has outgrown, and the deliveries in it, until a full collection.
  const holds: Hold[] = [];
  /** Deliveries without an outcome, and holds that are not over. */
  let unfinished = 0;
  let onIdle: () => void = () => undefined;
  let closed: Promise<{ unfinished: number }> | undefined;

  async function receiveTransferCallback(input: unknown, delivery: Delivery<C> = {}): Promise<TransferCallbackOutcome> {
    const { source = 'direct' } = delivery;
    const startedAt = performance.now();
    const ended = await judge(input, source, delivery);
    const outcome = { source, durationMs: performance.now() - startedAt, ...ended };
    announce(outcome, options);
    return outcome;
  }

  async function judge(input: unknown, source: string, { admit, unreadable }: Delivery<C>): Promise<Ended> {
    const read = unreadable === undefined ? validate(input) : invalid(unreadable);
    const callback = 'callback' in read ? read.callback : undefined;
    if (admit !== undefined) {
      // For the logs alone: the day the service changes a field, a verifier that needs it says no to everything.
      const issues = 'issues' in read ? { issues: read.issues } : {};
      try {
        if (!(await admit(callback))) return { outcome: 'unauthorized', ...issues };
      } catch (error) {
        return { outcome: 'unauthorized', ...issues, error };
      }
    }
    if (!('callback' in read)) return read;
    const { event, data } = read.callback;
    unfinished += 1;
    try {
      return { id: data.id, event, status: data.status, ...(await act(read.callback, source)) };
    } finally {
      finishOne();
    }
  }

  function validate(input: unknown): { callback: C } | Invalid {
    try {
      const parsed = schema.safeParse(input);
      if (!parsed.success) return invalid(parsed.error.issues);
      if (given.schema !== undefined) requireCallback(parsed.data);
      return { callback: parsed.data };
    } catch (error) {
      return { ...invalid([{ path: [], message: 'The schema failed.' }]), error };
    }
  }

  /** Claims the callback and acts on the answer; waits, claiming again, while another delivery holds it. */
  async function act(callback: C, source: string): Promise<Ending> {
    const { event, data } = callback;
    const { id: key, externalId } = data;
    const fingerprint = fingerprintOf(callback);
    const token = crypto.randomUUID();
    const request = { token, fingerprint, leaseMs, retentionMs, timeoutMs: storeTimeoutMs, event, externalId };
    const waitUntil = performance.now() + inFlightWaitMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
      if (closed !== undefined) return { outcome: 'closing' };
      let claiming: Promise<Claim<Tx>> | undefined;
      let claim: Claim<Tx>;
      try {
        claiming = store.claim(key, request);
        claim = await withinStoreDeadline(claiming);
      } catch (error) {
        // It may have been applied all the same, or be applied yet: without a holder it would stand in the way of the
        // next attempt. If releasing it fails too, it lapses.
        claiming?.then((late) => (late.state === 'claimed' ? late.lease.release() : undefined)).catch(() => undefined);
        return { outcome: 'store_unavailable', error };
      }
      if (claim.state === 'claimed') return run(callback, claim.lease, source);
      if (claim.state === 'settled') {
        return claim.fingerprint === fingerprint
          ? { outcome: 'duplicate' }
          : { outcome: 'conflict', settled: claim.fingerprint };
      }
      const leftMs = waitUntil - performance.now();
      if (leftMs <= 0) return { outcome: 'in_progress' };
      await pause(Math.min(pauseMs, leftMs));
    }
  }

  /** Runs the handler under the lease. Its deadline ends the delivery, never the hold: only the handler does. */
  async function run(callback: C, lease: Lease<Tx>, source: string): Promise<Ending> {
    const { id } = callback.data;
    const hold = holdLease(id, lease, terms, (over) => {
      holds.splice(holds.indexOf(over), 1);
      finishOne();
    });
    holds.push(hold);
    unfinished += 1;
    if (closed !== undefined) {
      await hold.release();
      return { outcome: 'closing' };
    }

    return new Promise((resolve) => {
      let late = false;
      const deadline = handlerDeadlines.set(() => {
        late = true;
        const error = new TransferCallbackError('HANDLER_TIMEOUT', `Not settled within ${handlerTimeoutMs} ms.`);
        hold.controller.abort(error);
        resolve({ outcome: 'timed_out', error });
      });
      void handle(callback, { signal: hold.controller.signal, source, tx: lease.tx }).then(async (handled) => {
        handlerDeadlines.clear(deadline);
        if (late) logger.warn({ id, outcome: handled.outcome }, 'The handler of a transfer callback settled late.');
        if (handled.outcome === 'processed') {
          resolve(await hold.settle());
        } else {
          await hold.release();
          resolve(handled);
        }
      });
    });
  }

  async function handle(callback: C, context: HandlerContext<Tx>): Promise<Handled> {
    let believed = callback;
    if (confirm !== undefined) {
      try {
        believed = requireSameFacts(callback, await confirm(callback, { signal: context.signal }));
        // Confirming took all of the time: the delivery has ended, and the next one will confirm again.
        context.signal.throwIfAborted();
      } catch (error) {
        return { outcome: 'unconfirmed', error };
      }
    }
    try {
      await (believed.event === 'transfer.success'
        ? options.onSuccess(believed as Extract<C, { event: 'transfer.success' }>, context)
        : options.onFailed(believed as Extract<C, { event: 'transfer.failed' }>, context));
      return { outcome: 'processed' };
    } catch (error) {
      return isRetryLater(error)
        ? { outcome: 'retry_later', retryAfterMs: error.retryAfterMs, error }
        : { outcome: 'handler_failed', error };
    }
  }

  function finishOne(): void {
    unfinished -= 1;
    if (unfinished === 0) onIdle();
  }

  async function close({ timeoutMs = 10_000 }: { timeoutMs?: number } = {}): Promise<{ unfinished: number }> {
    wholeNumber('timeoutMs', timeoutMs, 0);
    return (closed ??= finishAll(timeoutMs));
  }

  async function finishAll(timeoutMs: number): Promise<{ unfinished: number }> {
    await idleWithin(timeoutMs);
    for (const hold of holds) hold.controller.abort(new TransferCallbackError('CLOSING', 'The receiver is closing.'));
    await idleWithin(storeTimeoutMs);
    const left = [...holds];
    for (const hold of left) hold.letGo();
    return { unfinished: left.length };
  }

  async function idleWithin(ms: number): Promise<void> {
    if (unfinished === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      onIdle = () => {
        clearTimeout(timer); // It would keep the process alive.
        resolve();
      };
    });
  }

  return {
    receive: receiveTransferCallback,
    close,
    get closing() {
      return closed !== undefined;
    },
    options,
  };
}

function invalid(issues: readonly Issue[]): Invalid {
  // An issue of the schema may carry the value it was found in, which may be a phone number.
  return { outcome: 'invalid', issues: issues.map(({ path, message }) => ({ path, message })) };
}
