import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { toPrintable } from '../lib/text.js';
import type { EventShape } from './callback.js';
import { toDeliveryName, type Delivery } from './delivery.js';
import type { TransferCallbackOutcome } from './outcomes.js';
import type { ClaimReply } from './store.js';

// Contexts hold names only, never data of the transfer: what a handler, `confirm` or a claim resolves with is not
// published. Check `start.hasSubscribers`, because `hasSubscribers` of a TracingChannel is missing before Node 20.13.

/** The message of `tracing:transfer-callbacks:receive:*`. At the end `result` is the outcome. */
export interface ReceiveTrace {
  readonly delivery: string;
  readonly source: string;
  result?: TransferCallbackOutcome;
}

/**
 * The message of `tracing:transfer-callbacks:store:*`. At the end `result` is the state of the reply to a claim, or the
 * value that the claim's method resolved with. If the call failed, `error` is set instead.
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
  /** As in outcomes: printable, at most its first 255 characters. An event of `onOther` may have none. */
  readonly externalId: string | undefined;
  error?: unknown;
}

/** The message of `tracing:transfer-callbacks:handle:*`. */
export interface HandleTrace extends ConfirmTrace {
  readonly event: EventShape['event'];
  /** Set for an event of `onOther`. */
  readonly type: string | undefined;
}

/** A call of the store. */
export interface StoreCall {
  readonly method: StoreTrace['call'];
  readonly token: string;
  readonly id: string;
}

/** A channel on which a promise is traced. */
type Channel<Context extends object> = TracingChannel<unknown, Context>;

export const receiveChannel: Channel<ReceiveTrace> = tracingChannel('transfer-callbacks:receive');
export const storeChannel: Channel<StoreTrace> = tracingChannel('transfer-callbacks:store');
export const confirmChannel: Channel<ConfirmTrace> = tracingChannel('transfer-callbacks:confirm');
export const handleChannel: Channel<HandleTrace> = tracingChannel('transfer-callbacks:handle');

// Call these if the channel has subscribers. Each publishes when its work begins and ends, even after its deadline.

export function traceStoreCall<T>({ method, token, id }: StoreCall, work: () => Promise<T>): Promise<T> {
  const context = { delivery: toDeliveryName(token), id, call: method };
  return traceUnseen(storeChannel, context, work, (reply) =>
    method === 'claim' ? (reply as ClaimReply<unknown>).state : reply,
  );
}

export function traceConfirm<T>({ name, id, externalId }: Delivery, work: () => T | PromiseLike<T>): Promise<T> {
  return traceUnseen(confirmChannel, { delivery: name, id, externalId: externalId && toPrintable(externalId) }, work);
}

export function traceHandler({ name, id, externalId, event, type }: Delivery, work: () => unknown): Promise<unknown> {
  const context = { delivery: name, id, externalId: externalId && toPrintable(externalId), event, type };
  return traceUnseen(handleChannel, context, work);
}

/** Publishes when `work` begins and ends, and in place of the value that it resolves with what `show` makes of it. */
async function traceUnseen<T, Context extends object>(
  channel: Channel<Context>,
  context: Context,
  work: () => T | PromiseLike<T>,
  show: (value: T) => unknown = () => undefined,
): Promise<T> {
  // The channel publishes what its promise resolves with. The value itself goes past it.
  const unseen = {} as { value: T };
  await channel.tracePromise(async () => {
    unseen.value = await work();
    return show(unseen.value);
  }, context);
  return unseen.value;
}
