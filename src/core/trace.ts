import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { toPrintable } from '../lib/text.js';
import type { CallbackShape } from './callback.js';
import { toDeliveryName, type Delivery } from './delivery.js';
import type { TransferCallbackOutcome } from './outcomes.js';
import type { CallbackStore, Claim, ClaimRequest } from './store.js';
import { requireClaim } from './timed-store.js';

// Contexts hold names only, never data of the transfer: what a handler, `confirm` or a claim resolves with is not published.
// Check `start.hasSubscribers` first: that costs 3 ns, and `hasSubscribers` of a TracingChannel is missing before Node 20.13.

/** The message of `tracing:transfer-callbacks:receive:*`. At the end `result` is the outcome. */
export interface ReceiveTrace {
  readonly delivery: string;
  readonly source: string;
  result?: TransferCallbackOutcome;
}

/**
 * The message of `tracing:transfer-callbacks:store:*`. At the end `result` is the state of a claim, or the value that
 * the lease's method resolved with. If the call failed, `error` is set instead.
 */
export interface StoreTrace {
  readonly delivery: string;
  readonly id: string;
  readonly call: 'claim' | 'renew' | 'settle' | 'release';
  result?: unknown;
  error?: unknown;
}

/** The message of `tracing:transfer-callbacks:confirm:*`. */
export interface ConfirmTrace {
  readonly delivery: string;
  readonly id: string;
  /** As in outcomes: printable, at most its first 255 characters. */
  readonly externalId: string;
  error?: unknown;
}

/** The message of `tracing:transfer-callbacks:handle:*`. */
export interface HandleTrace extends ConfirmTrace {
  readonly event: CallbackShape['event'];
}

/** A channel on which a promise is traced. */
type Channel<Context extends object> = TracingChannel<unknown, Context>;

/** The whole delivery. */
export const receiveChannel: Channel<ReceiveTrace> = tracingChannel('transfer-callbacks:receive');
/** Each call of the store. */
const storeChannel: Channel<StoreTrace> = tracingChannel('transfer-callbacks:store');
/** `confirm`, until it finishes, even after its deadline. */
export const confirmChannel: Channel<ConfirmTrace> = tracingChannel('transfer-callbacks:confirm');
/** `onSuccess` or `onFailed`, until it finishes, even after its deadline. */
export const handleChannel: Channel<HandleTrace> = tracingChannel('transfer-callbacks:handle');

/** Calls `confirm`, and publishes when it begins and ends. */
export function traceConfirm<T>({ name, id, externalId }: Delivery, work: () => T | PromiseLike<T>): Promise<T> {
  return traceUnseen(confirmChannel, { delivery: name, id, externalId: toPrintable(externalId) }, work);
}

/** Calls the handler, and publishes when it begins and ends. */
export function traceHandler({ name, id, externalId, event }: Delivery, work: () => unknown): Promise<unknown> {
  return traceUnseen(handleChannel, { delivery: name, id, externalId: toPrintable(externalId), event }, work);
}

/** Publishes when `work` begins and ends, without the value that it resolves with. */
async function traceUnseen<T, Context extends object>(
  channel: Channel<Context>,
  context: Context,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  const seen = {} as { result: T };
  await channel.tracePromise(async () => {
    seen.result = await work();
  }, context);
  return seen.result;
}

/** Returns `store`, with its calls published while the channel has subscribers. */
export function tracedStore<Tx>(store: CallbackStore<Tx>): CallbackStore<Tx> {
  return {
    transactional: store.transactional === true,
    claim: (key, request) =>
      storeChannel.start.hasSubscribers ? traceClaim(store, key, request) : store.claim(key, request),
  };
}

async function traceClaim<Tx>(store: CallbackStore<Tx>, id: string, request: ClaimRequest): Promise<Claim<Tx>> {
  const delivery = toDeliveryName(request.token);
  const traceCall = <T>(call: StoreTrace['call'], work: () => Promise<T>): Promise<T> =>
    storeChannel.tracePromise(async () => work(), { delivery, id, call });
  const seen = {} as { claim: Claim<Tx> };
  await traceCall('claim', async () => {
    seen.claim = requireClaim(await store.claim(id, request));
    return seen.claim.state;
  });
  if (seen.claim.state !== 'claimed') return seen.claim;
  const { lease } = seen.claim;
  return {
    state: 'claimed',
    lease: {
      tx: lease.tx,
      renew: () => traceCall('renew', () => lease.renew()),
      settle: () => traceCall('settle', () => lease.settle()),
      release: () => traceCall('release', () => lease.release()),
    },
  };
}
