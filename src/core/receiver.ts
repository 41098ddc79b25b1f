import { invalidArgument, invalidSecret, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import type { CallbackOf, CallbackShape, EventShape, TransferCallback } from './callback.js';
import { checkStore, type StoreProbe } from './check.js';
import { Lines } from './claim/lines.js';
import { createDeliveryNamer, type WaitUntil } from './delivery.js';
import { forgetCallback, type ForgetOptions } from './forget.js';
import { IgnoredNames } from './report.js';
import { InFlight } from './in-flight.js';
import { inspectCallback, type InspectedCallback } from './records.js';
import type { ReceiverOptions, ResolvedOptions } from './options.js';
import type { TransferCallbackOutcome } from './outcomes.js';
import type { ReceiverParts } from './handle.js';
import { receiveCallback, refuseCall } from './receive.js';
import { resolveReceiverOptions } from './resolve-options.js';
import { receiveChannel } from './trace.js';
import type { VerifySender } from './verify.js';

/** Options of `receive`. */
export interface ReceiveOptions<C extends CallbackShape = TransferCallback> {
  /**
   * Where the callback comes from, for the handler and `onOutcome`.
   * @default 'direct'
   */
  source?: string | undefined;
  /**
   * Decides whether the sender is trusted. Runs after validation, and with `undefined` for an invalid callback and for
   * an event of `onOther`, so that an untrusted sender cannot tell valid from invalid. Any value but `true`, or a
   * throw, is `unauthorized`. Unlike the other options it may not be `undefined`: every sender would be trusted.
   * @default none
   */
  verify?: VerifySender<C>;
  /**
   * Called when a handler starts, with a promise that resolves when its delivery is over: with a late handler, the
   * recording of its success, and the functions of `afterCommit`. For a host that ends or freezes a process while
   * nothing is awaited.
   * @default none
   */
  waitUntil?: WaitUntil | undefined;
}

/**
 * Processes callbacks from any source (HTTP, reconciliation, a queue, a replay) against one record of what was handled.
 *
 * @example
 * async function shutDown(receiver: TransferCallbackReceiver): Promise<void> {
 *   const { ids } = await receiver.close({ timeoutMs: 8_000 });
 *   if (ids.length > 0) console.warn('These handlers still run:', ids);
 * }
 */
export interface TransferCallbackReceiver<C extends CallbackShape = TransferCallback, Tx = undefined> {
  /**
   * Validates the callback, claims it, runs the handler and settles. Never rejects, but resolves with the outcome.
   * Only `processed` and `duplicate` mean that the handler has succeeded. With wrong options, such as a misspelt
   * `verify`, no sender is trusted: the outcome is `unauthorized`, with INVALID_ARGUMENT.
   */
  receive(callback: unknown, options?: ReceiveOptions<C>): Promise<TransferCallbackOutcome>;
  /**
   * Reads the store's record of a callback, by the service's id. Changes nothing. The record may be out of date when it
   * arrives.
   * Rejects with INVALID_ARGUMENT, with STORE_UNSUPPORTED if the store has no `read`, with STORE_TIMEOUT after
   * `storeTimeoutMs`, or as the store does.
   */
  inspect(id: string): Promise<InspectedCallback>;
  /**
   * Tries the store with a new key: claims, releases, settles, reads and forgets it. Unlike a ping, this finds a full
   * or read-only server, a missing table or permission, a plugin that changes what the store reads, and in MySQL a
   * proxy or a cluster that lacks what a claim needs. Logs a warning for each setting that may lose records. Takes at
   * most `storeTimeoutMs` and 50 ms. Never rejects. Call it at startup or by hand.
   */
  check(): Promise<StoreProbe>;
  /**
   * Forgets a handled callback, so that its next delivery runs the handler again. Use it after a handler that succeeded
   * by mistake. Resolves with `false`, and changes nothing, unless the record is handled with the fingerprint that was
   * seen. Logs a warning before and after, and rejects if it cannot log the first one. Otherwise rejects as `inspect`
   * does, and with STORE_UNSUPPORTED if the store has no `forget`.
   */
  forget(id: string, options: ForgetOptions): Promise<boolean>;
  /**
   * Stops accepting deliveries. Waits up to `timeoutMs` (default 10 000) for running ones, then aborts their signals
   * and waits up to `storeTimeoutMs` more. Logs and resolves with how many handlers, recordings and functions of
   * `afterCommit` still run, and with the ids of their callbacks. Their leases expire within `leaseMs`. Rejects with
   * INVALID_ARGUMENT if the options are wrong.
   */
  close(options?: { timeoutMs?: number }): Promise<{ unfinished: number; ids: readonly string[] }>;
  /** Whether `close` has begun. */
  readonly closing: boolean;
  /** The validated options with defaults applied. */
  readonly options: Readonly<ResolvedOptions<C, Tx>>;
}

/**
 * Makes the receiver, which processes callbacks without HTTP. Give it to `transferCallbackRouter`, and use the same one
 * for reconciliation, a queue worker or a manual replay, so that they share one record of what was handled.
 * Throws INVALID_ARGUMENT.
 *
 * @example
 * const receiver = transferCallbackReceiver({ store, onSuccess, onFailed });
 * app.post('/callbacks/transfers', transferCallbackRouter({ receiver }));
 * const { outcome } = await receiver.receive(JSON.parse(text), { source: 'replay' });
 */
export function transferCallbackReceiver<C extends EventShape = TransferCallback, Tx = undefined>(
  given: ReceiverOptions<C, Tx>,
): TransferCallbackReceiver<CallbackOf<C>, Tx> {
  const options = resolveReceiverOptions(given);
  const { store, logger } = options;
  const inFlight = new InFlight();
  const nameDelivery = createDeliveryNamer();
  const parts: ReceiverParts = {
    options: options as unknown as ReceiverParts['options'],
    inFlight,
    lines: new Lines({ options, inFlight }),
    ignored: new IgnoredNames(),
    hasWarnedOfTx: false,
    hasWarnedOfTime: false,
  };
  if (store.processLocal === true && process.env.NODE_ENV === 'production') {
    logger.warn({}, 'Callbacks are deduplicated within this process only: use a shared store.');
  }
  let closed: ReturnType<TransferCallbackReceiver['close']> | undefined;
  return {
    receive(callback, receiveOptions) {
      const read = readReceiveOptions(receiveOptions);
      const arrival = { name: nameDelivery(), startedAt: performance.now(), ...read.origin };
      const receive = () =>
        'fault' in read
          ? refuseCall(arrival, read.fault, parts)
          : receiveCallback(arrival, callback, read.verify as VerifySender<CallbackShape>, parts);
      if (!receiveChannel.start.hasSubscribers) return receive();
      return receiveChannel.tracePromise(receive, { delivery: arrival.name, source: arrival.source });
    },
    inspect: (id) => inspectCallback(id, parts),
    check: () => checkStore(nameDelivery(), parts),
    forget: (id, forgetOptions) => forgetCallback(id, forgetOptions, parts),
    async close(closeOptions = {}) {
      onlyKnownOptions(closeOptions, ['timeoutMs'], { example: 'receiver.close({ timeoutMs: 10_000 })' });
      const { timeoutMs = 10_000 } = closeOptions;
      wholeNumber('timeoutMs', timeoutMs, { min: 0 });
      return (closed ??= closeReceiver(parts, timeoutMs));
    },
    get closing() {
      return closed !== undefined;
    },
    options,
  };
}

/** Reads the options of `receive`, which never rejects. A `verify` that is misspelt or has no value is a fault. */
function readReceiveOptions<C extends CallbackShape>(given: ReceiveOptions<C> | null | undefined) {
  if (given === undefined || given === null) return { origin: { source: 'direct' }, verify: undefined };
  try {
    onlyKnownOptions(given, ['source', 'verify', 'waitUntil'], { example: 'receive(callback, { verify })' });
    const { source = 'direct', verify, waitUntil } = given;
    if (typeof source !== 'string') throw invalidArgument('source', 'a string', source, "source: 'queue'");
    // A ready-made verifier reads a request, and `receive` has none.
    const fits =
      typeof verify === 'function' && !('readsCallback' in verify || 'readsPath' in verify || 'sign' in verify);
    if ('verify' in given && !fits) {
      const expected = 'a function of the callback, not a verifier of requests';
      throw invalidSecret('verify', expected, verify, 'verify: (callback) => isTrusted(callback)');
    }
    return { origin: { source, waitUntil }, verify };
  } catch (thrown) {
    return { origin: { source: 'direct' }, fault: toReason(thrown) };
  }
}

async function closeReceiver(
  { lines, inFlight, options }: ReceiverParts,
  timeoutMs: number,
): ReturnType<TransferCallbackReceiver['close']> {
  const { storeTimeoutMs, leaseMs, logger } = options;
  lines.close();
  await inFlight.waitUntilIdle(timeoutMs);
  inFlight.abortAll(new TransferCallbackError('CLOSING', 'The receiver is closing.'));
  await inFlight.waitUntilIdle(storeTimeoutMs);
  const ids = inFlight.finishAll();
  if (ids.length > 0) {
    const message = `The receiver has closed, and ${ids.length} handlers, recordings or functions of \`afterCommit\` still run`;
    logger.warn(
      { ids },
      `${message}. A handler may run again when its lease expires, within ${leaseMs} ms: compare these payouts with your books.`,
    );
  }
  return { unfinished: ids.length, ids };
}
