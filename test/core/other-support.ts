import { vi } from 'vitest';
import type { z } from 'zod/v4';
import { memoryStore, transferCallbackReceiver, type Logger, type TransferCallbackOutcome } from 'transfer-callbacks';
import { withOthers } from './support.js';

/** An event of `onOther`. */
export const paid = {
  type: 'charge.paid',
  data: { id: '7', status: 'SUCCESS', amount: 1_000, currency: 'XAF', reference: 'deposit-1' },
};

export type OnOther = NonNullable<
  Parameters<typeof transferCallbackReceiver<z.output<typeof withOthers>>>[0]['onOther']
>;

/** Makes a receiver of all events. Its `confirm` counts as a failure. */
export function otherReceiver(onOther?: OnOther, logger: false | Logger = false) {
  const unexpected = vi.fn(() => {
    throw new Error('no');
  });
  const handler = vi.fn();
  const ended: TransferCallbackOutcome[] = [];
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    schema: withOthers,
    onSuccess: handler,
    onFailed: handler,
    confirm: (callback, { source }) => (source === 'confirmed' ? callback : unexpected()),
    // Without it the receiver takes none of these events.
    onOther: onOther as never,
    onOutcome: (outcome) => ended.push(outcome),
    handlerTimeoutMs: 700,
    logger,
  });
  return { receiver, handler, unexpected, ended };
}
