import { vi } from 'vitest';
import {
  memoryStore,
  transferCallbackReceiver,
  type Logger,
  type PayoutService,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { otherService } from './support.js';

/** An event of `onOther`. */
export const paid = {
  type: 'charge.paid',
  data: { id: '7', status: 'SUCCESS', amount: 1_000, currency: 'XAF', reference: 'deposit-1' },
};

type Event = typeof otherService extends PayoutService<infer E> ? E : never;
export type OnOther = NonNullable<Parameters<typeof transferCallbackReceiver<Event>>[0]['onOther']>;

/** Makes a receiver of all events. Its `confirm` counts as a failure. */
export function otherReceiver(onOther: OnOther = vi.fn(), logger: false | Logger = false) {
  const unexpected = vi.fn(() => {
    throw new Error('no');
  });
  const handler = vi.fn();
  const ended: TransferCallbackOutcome[] = [];
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    service: otherService,
    onSuccess: handler,
    onFailed: handler,
    confirm: (_callback, { source }) => source === 'confirmed' || unexpected(),
    // Without it the receiver takes none of these events.
    onOther: onOther,
    onOutcome: (outcome) => ended.push(outcome),
    handlerTimeoutMs: 700,
    logger,
  });
  return { receiver, handler, unexpected, ended };
}
