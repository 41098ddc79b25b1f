import { isReversalOf } from '../facts.js';
import type { CallbackStore, Claim, ClaimReply } from '../store.js';
import { callClaim, claimRecord, releaseUnheld, type Claimed, type TimedRequest } from './call-store.js';
import type { StoreRules } from './rules.js';

/**
 * Claims the record of a callback, or what a refund needs if the request is for both records. A claim that is granted
 * too late is released. Rejects with STORE_TIMEOUT, STORE_REPLY_UNEXPECTED, or as the store does.
 */
export function claimCallback<Tx>(
  store: CallbackStore<Tx>,
  callback: Claimed,
  request: TimedRequest,
  rules: StoreRules,
): Promise<ClaimReply<Tx>> {
  if (request.record !== 'both') return claimRecord(store, callback, request, rules);
  return rules.claimsBoth
    ? claimBoth(store, callback, request, rules)
    : claimOneAfterTheOther(store, callback, request, rules);
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

async function claimBoth<Tx>(
  store: CallbackStore<Tx>,
  callback: Claimed,
  request: TimedRequest,
  rules: StoreRules,
): Promise<ClaimReply<Tx>> {
  const beganAt = performance.now();
  const both = await claimRecord(store, callback, request, rules);
  if (both.state !== 'handled' || !isReversalOf(both.fingerprint, request.fingerprint)) return both;
  const { timeoutMs } = request;
  const queueMs = Math.max(timeoutMs, Math.ceil(request.queueMs - (performance.now() - beganAt)));
  return claimRecord(store, callback, { ...request, record: 'reversal', queueMs }, rules);
}

/** Claims the record of the refund first: it is kept if the other one has the success that is reversed. */
async function claimOneAfterTheOther<Tx>(
  store: CallbackStore<Tx>,
  callback: Claimed,
  request: TimedRequest,
  rules: StoreRules,
): Promise<ClaimReply<Tx>> {
  const refund = await claimRecord(store, callback, { ...request, record: 'reversal' }, rules);
  if (refund.state !== 'claimed') return refund;
  const transfer = await claimRecord(store, callback, { ...request, record: undefined }, rules).catch(
    (error: unknown) => {
      releaseUnheld(refund.claim, callback.id, request);
      throw error;
    },
  );
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
function toPair<Tx>(transfer: Claim<Tx>, refund: Claim<Tx>): Claim<Tx> {
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
