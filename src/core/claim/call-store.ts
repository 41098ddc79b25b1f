import { describeState, hasMethods } from '../../lib/checks.js';
import { callWithin, graceMs } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest } from '../store.js';
import { storeChannel, traceStoreCall, type StoreCall } from '../trace.js';
import type { StoreRules } from './rules.js';

/** A request of the receiver. It always has the times that are optional for other callers. */
export type TimedRequest = ClaimRequest & Required<Pick<ClaimRequest, 'timeoutMs' | 'queueMs'>>;

/** What a claim is about: the key of a callback, and its id, which names it in log lines and traces. */
export interface Claimed {
  readonly key: string;
  readonly id: string;
}

/**
 * Calls the store. Resolves or rejects as `call` does, or rejects with STORE_TIMEOUT after `timeoutMs`. `onLateValue`
 * gets what the call resolves with after that. A call with a name is traced.
 */
export function callStore<T>(
  timeoutMs: number,
  call: () => Promise<T>,
  name?: StoreCall,
  onLateValue?: (value: T) => void,
): Promise<T> {
  const isTraced = name !== undefined && storeChannel.start.hasSubscribers;
  const traced = isTraced ? () => traceStoreCall(name, call) : call;
  return callWithin(timeoutMs, traced, lateError, graceMs, onLateValue);
}

/**
 * Makes one claim. If it is granted too late, it is released. Rejects with STORE_TIMEOUT, STORE_REPLY_UNEXPECTED, or as
 * the store does.
 */
export function claimRecord<Tx>(
  store: CallbackStore<Tx>,
  { key, id }: Claimed,
  request: TimedRequest,
  { queues }: StoreRules,
): Promise<ClaimReply<Tx>> {
  const { token, timeoutMs, queueMs } = request;
  const releaseLate = (reply: ClaimReply<Tx>): void => {
    if (reply.state === 'claimed') releaseUnheld(reply.claim, id, request);
  };
  return callStore(
    queues ? queueMs + timeoutMs : timeoutMs,
    // A JavaScript store may return a plain value.
    () => Promise.resolve(store.claim(key, request)).then(requireReply<Tx>),
    { method: 'claim', token, id },
    releaseLate,
  );
}

/** Calls a method of a claim. Rejects with STORE_TIMEOUT, or as the store does. */
export function callClaim<Tx, Method extends Exclude<StoreCall['method'], 'claim'>>(
  claim: Claim<Tx>,
  method: Method,
  id: string,
  { token, timeoutMs }: TimedRequest,
): ReturnType<Claim<Tx>[Method]> {
  const call = (): Promise<unknown> => claim[method]();
  return callStore(timeoutMs, call, { method, token, id }) as ReturnType<Claim<Tx>[Method]>;
}

/** Frees a callback whose claim no delivery holds, so that it does not block the next attempt. Never throws. */
export function releaseUnheld<Tx>(claim: Claim<Tx>, id: string, request: TimedRequest): void {
  callClaim(claim, 'release', id, request).catch(() => undefined); // If this fails, the lease expires.
}

function lateError(ms: number): TransferCallbackError {
  return new TransferCallbackError('STORE_TIMEOUT', `The store did not reply within ${ms} ms.`);
}

/** Throws STORE_REPLY_UNEXPECTED unless `reply` is one. A JavaScript store may resolve with any value. */
function requireReply<Tx>(reply: ClaimReply<Tx>): ClaimReply<Tx> {
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
