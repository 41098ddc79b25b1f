import type { z } from 'zod';
import { transferCallbackSchema, type CallbackShape, type Given, type TransferCallback } from '../core/callback.js';
import { onlyKnownOptions, wholeNumber } from '../core/errors.js';
import type { TransferClient } from './client.js';
import { TransferClientError } from './errors.js';
import { announced } from './final.js';

export interface ConfirmOptions<C extends CallbackShape = TransferCallback> {
  /** How many transfers are read at a time; the other deliveries wait. Default 8. */
  concurrency?: number | undefined;
  /** The receiver's `schema`, where it has one of its own. */
  schema?: z.ZodType<C> | undefined;
}

/**
 * Makes a `confirm` for the receiver: reads the transfer back from the service, and answers with what was read. The
 * receiver compares it with the callback (id, externalId, status, amount, currency) and hands it to the handler, so that
 * nothing of an unsigned POST is believed. A transfer that is not final, cannot be read, or is not as documented
 * rejects: the delivery is `unconfirmed`, and the service will come again. Throws INVALID_OPTION.
 */
export function confirmWith<C extends CallbackShape = TransferCallback>(
  client: Pick<TransferClient, 'getTransaction'>,
  options: ConfirmOptions<C> = {},
): (callback: Given<C>, context: { signal: AbortSignal }) => Promise<Given<C>> {
  onlyKnownOptions(options, ['concurrency', 'schema']);
  const { concurrency = 8, schema = transferCallbackSchema as unknown as z.ZodType<C> } = options;
  wholeNumber('concurrency', concurrency, 1);
  let running = 0;
  const waiting = new Set<() => void>();

  return async function confirmTransfer({ data: { id } }, { signal }) {
    await turn(signal);
    try {
      const callback = announced(await client.getTransaction(id, { signal }));
      if (callback === undefined) {
        throw new TransferClientError('NOT_FINAL', 'The service does not say that this transfer is final.');
      }
      const checked = schema.safeParse(callback);
      if (checked.success) return checked.data;
      const at = checked.error.issues.map(({ path }) => path.map(String).join('.')).join(', ');
      throw new TransferClientError(
        'UNREADABLE_ANSWER',
        `The transaction that was read is not as documented, at ${at}.`,
      );
    } finally {
      running -= 1;
      const [next] = waiting;
      next?.();
    }
  };

  /** Waits until fewer than `concurrency` are running, and is one of them then. */
  async function turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (running >= concurrency) {
      await new Promise<void>((resolve, reject) => {
        const begin = (): void => {
          waiting.delete(begin);
          signal.removeEventListener('abort', giveUp);
          running += 1;
          resolve();
        };
        const giveUp = (): void => {
          waiting.delete(begin);
          reject(signal.reason as Error);
        };
        waiting.add(begin);
        signal.addEventListener('abort', giveUp, { once: true });
      });
    } else {
      running += 1;
    }
  }
}
