import { describeState, hasMethods } from '../../lib/checks.js';
import { graceMs, waitWithin } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest } from '../store.js';
import { storeChannel, traceStoreCall, type StoreCall } from '../trace.js';
import type { Delivery } from '../delivery.js';
import { isReversalOf } from '../facts.js';
import type { SafeLogger } from '../../lib/logger.js';
import type { InFlight } from '../in-flight.js';
import type { ResolvedTimes } from '../times.js';

/** What the claims of a receiver share, and all else that reads or changes its records. */
export interface ClaimParts {
  readonly options: ResolvedTimes & {
    readonly store: CallbackStore<unknown>;
    readonly logger: SafeLogger;
    /** Set for a service that reverses transfers: each transfer may have a second record. */
    readonly onReversed?: unknown;
  };
  readonly inFlight: InFlight;
}

/** A request of the receiver. It always has the times that are optional for other callers. */
export type TimedRequest = ClaimRequest & Required<Pick<ClaimRequest, 'timeoutMs' | 'queueMs'>>;

/** The callback that is claimed. */
type Claimed = Pick<Delivery, 'key' | 'id'>;

/**
 * Calls the store. Resolves or rejects as `call` does, or rejects with STORE_TIMEOUT after `timeoutMs`. `onLateValue`
 * gets what the call resolves with after that. A call with a name is traced. `call` may also throw, or return a plain
 * value.
 */
export function callStore<T>(
  timeoutMs: number,
  call: () => Promise<T>,
  name?: StoreCall,
  onLateValue?: (value: T) => void,
): Promise<T> {
  const isTraced = name !== undefined && storeChannel.start.hasSubscribers;
  try {
    const reply = isTraced ? traceStoreCall(name, call) : call();
    return waitWithin(timeoutMs, reply, lateError, { moreMs: graceMs, onLateValue });
  } catch (error) {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- passed on as it came.
    return Promise.reject(error);
  }
}

/** Makes one claim. If it is granted too late, it is released. */
function claimRecord(
  store: CallbackStore<unknown>,
  { key, id }: Claimed,
  request: TimedRequest,
): Promise<ClaimReply<unknown>> {
  const { token, timeoutMs, queueMs } = request;
  return callStore(
    store.transactional === true ? queueMs + timeoutMs : timeoutMs,
    // A JavaScript store may return a plain value.
    () => Promise.resolve(store.claim(key, request)).then(requireReply),
    { method: 'claim', token, id },
    (reply) => {
      if (reply.state === 'claimed') releaseUnheld(reply.claim, id, request);
    },
  );
}

export function callClaim<Method extends Exclude<StoreCall['method'], 'claim'>>(
  claim: Claim<unknown>,
  method: Method,
  id: string,
  { token, timeoutMs }: TimedRequest,
): ReturnType<Claim<unknown>[Method]> {
  const call = (): Promise<unknown> => claim[method]();
  return callStore(timeoutMs, call, { method, token, id }) as ReturnType<Claim<unknown>[Method]>;
}

/** Frees a callback whose claim no delivery holds, so that it does not block the next attempt. Never throws. */
export function releaseUnheld(claim: Claim<unknown>, id: string, request: TimedRequest): void {
  callClaim(claim, 'release', id, request).catch(() => undefined); // If this fails, the lease expires.
}

function lateError(ms: number): TransferCallbackError {
  return new TransferCallbackError('STORE_TIMEOUT', `The store did not reply within ${ms} ms.`);
}

/** Throws STORE_REPLY_UNEXPECTED unless `reply` is one. A JavaScript store may resolve with any value. */
function requireReply(reply: ClaimReply<unknown>): ClaimReply<unknown> {
  const given = reply as unknown as Record<string, unknown> | null | undefined;
  if (given?.state === 'in_progress') return reply;
  if (given?.state === 'handled' && typeof given.fingerprint === 'string') return reply;
  if (given?.state === 'claimed' && hasMethods(given.claim, 'renew', 'settle', 'release')) return reply;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'Expected `store.claim` to resolve with `claimed` and its claim, with `in_progress`, or with `handled` and its ' +
      `fingerprint, got ${describeState(reply)}.`,
  );
}

/**
 * Claims the record of a callback, or what a refund needs if the request is for both records. A claim that is granted
 * too late is released. Rejects with STORE_TIMEOUT, STORE_REPLY_UNEXPECTED, or as the store does.
 */
export function claimCallback(
  store: CallbackStore<unknown>,
  callback: Claimed,
  request: TimedRequest,
): Promise<ClaimReply<unknown>> {
  if (request.record !== 'both') return claimRecord(store, callback, request);
  return store.claimsBoth === true
    ? claimBoth(store, callback, request)
    : claimOneAfterTheOther(store, callback, request);
}

/*
 * A failure and a reversal both refund the transfer, so only one of them is handled, once. Each runs under the claim of
 * the record of the refund:
 *
 * | the record of the transfer | claimed is                                                        |
 * | -------------------------- | ----------------------------------------------------------------- |
 * | free                       | the record of the transfer, and the record of its refund          |
 * | handled with a success     | the record of its refund, if this is the reversal of that success |
 *
 * The record of the refund outlives a success that expires, is forgotten, or is recorded late over a refund.
 */

async function claimBoth(
  store: CallbackStore<unknown>,
  callback: Claimed,
  request: TimedRequest,
): Promise<ClaimReply<unknown>> {
  const beganAt = performance.now();
  const both = await claimRecord(store, callback, request);
  if (both.state !== 'handled' || !isReversalOf(both.fingerprint, request.fingerprint)) return both;
  const { timeoutMs } = request;
  const queueMs = Math.max(timeoutMs, Math.ceil(request.queueMs - (performance.now() - beganAt)));
  return claimRecord(store, callback, { ...request, record: 'reversal', queueMs });
}

/** Claims the record of the refund first: it is kept if the other one has the success that is reversed. */
async function claimOneAfterTheOther(
  store: CallbackStore<unknown>,
  callback: Claimed,
  request: TimedRequest,
): Promise<ClaimReply<unknown>> {
  const refund = await claimRecord(store, callback, { ...request, record: 'reversal' });
  if (refund.state !== 'claimed') return refund;
  const transfer = await claimRecord(store, callback, { ...request, record: undefined }).catch((error: unknown) => {
    releaseUnheld(refund.claim, callback.id, request);
    throw error;
  });
  if (transfer.state === 'claimed') return { state: 'claimed', claim: toPair(transfer.claim, refund.claim) };
  if (transfer.state === 'handled' && isReversalOf(transfer.fingerprint, request.fingerprint)) return refund;
  // If this fails, the delivery ends: a late release would free its next claim, which has the same token.
  await callClaim(refund.claim, 'release', callback.id, request);
  return transfer;
}

/**
 * Makes one claim of two leases. The transfer, which has what the handler has written, is recorded first. If the refund
 * cannot be recorded then, `settle` rejects, and is called again: both claims may be settled twice.
 */
function toPair(transfer: Claim<unknown>, refund: Claim<unknown>): Claim<unknown> {
  return {
    get tx() {
      return transfer.tx;
    },
    get ended() {
      return transfer.ended;
    },
    async renew() {
      const [isHeld, isRefundHeld] = await Promise.all([transfer.renew(), refund.renew()]);
      return isHeld && isRefundHeld;
    },
    async settle() {
      const one = await transfer.settle();
      const other = await refund.settle();
      return { overlapped: one.overlapped || other.overlapped };
    },
    async release() {
      await Promise.all([transfer.release(), refund.release()]);
    },
  };
}
