import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import { toPrintable } from '../lib/text.js';
import { toDeliveryName, type Delivery } from './delivery.js';
import type { ClaimReply } from './store.js';

// Contexts hold names only, never data of the transfer: what a handler, `confirm` or a claim resolves with is not
// published. Check `start.hasSubscribers`, because `hasSubscribers` of a TracingChannel is missing before Node 20.13.

type Channel = TracingChannel<unknown, object>;

/** At the end `result` is the outcome. */
export const receiveChannel: Channel = tracingChannel('transfer-callbacks:receive');
/** At the end `result` is the state of the reply to a claim, or the value that the claim's method resolved with. */
export const storeChannel: Channel = tracingChannel('transfer-callbacks:store');
export const confirmChannel: Channel = tracingChannel('transfer-callbacks:confirm');
export const handleChannel: Channel = tracingChannel('transfer-callbacks:handle');

export interface StoreCall {
  readonly method: 'claim' | 'renew' | 'settle' | 'release';
  readonly token: string;
  readonly id: string;
}

// Call these if the channel has subscribers. Each publishes when its work begins and ends, even after its deadline.

export function traceStoreCall<T>({ method, token, id }: StoreCall, work: () => Promise<T>): Promise<T> {
  const context = { delivery: toDeliveryName(token), id, call: method };
  return traceUnseen(storeChannel, context, work, (reply) =>
    method === 'claim' ? (reply as ClaimReply<unknown>).state : reply,
  );
}

export function traceConfirm({ name, id, externalId }: Delivery, work: () => unknown): Promise<unknown> {
  return traceUnseen(confirmChannel, { delivery: name, id, externalId: externalId && toPrintable(externalId) }, work);
}

export function traceHandler({ name, id, externalId, event, type }: Delivery, work: () => unknown): Promise<unknown> {
  const context = { delivery: name, id, externalId: externalId && toPrintable(externalId), event, type };
  return traceUnseen(handleChannel, context, work);
}

/** Publishes, in place of the value that `work` resolves with, what `show` makes of it. */
async function traceUnseen<T>(
  channel: Channel,
  context: object,
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
