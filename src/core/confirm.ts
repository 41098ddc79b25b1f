import { TransferCallbackError, toReason } from '../lib/errors.js';
import { finalEvents, type CallbackShape } from './callback.js';
import type { Delivery } from './delivery.js';
import { haveSameFacts, haveSameMoney, parseFingerprint, toFingerprint } from './facts.js';
import { readFields } from './fields.js';
import { isClosing, type InFlight } from './in-flight.js';
import type { Confirm, ResolvedOptions } from './options.js';
import type { Ending } from './outcomes.js';
import { traceConfirm } from './trace.js';

/**
 * Calls `confirm`, and gives the delivery the callback that it returns. Resolves with how the delivery ends otherwise:
 * `closing` if the receiver closes, and `unconfirmed` if `confirm` throws or is late, or if the id, event or facts
 * differ. Never rejects.
 */
export async function confirmCallback<C extends CallbackShape, Tx>(
  delivery: Delivery<C>,
  confirm: Confirm<C>,
  { confirmTimeoutMs, onReversed }: Pick<ResolvedOptions<C, Tx>, 'confirmTimeoutMs' | 'onReversed'>,
  inFlight: InFlight,
): Promise<Ending | undefined> {
  const { callback, id, name, source } = delivery;
  const lateError = () =>
    new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not finish within ${confirmTimeoutMs} ms.`);
  try {
    const confirmed = await inFlight.call(id, confirmTimeoutMs, lateError, (signal) =>
      traceConfirm(delivery, () => confirm(callback, { delivery: name, source, signal })),
    );
    takeConfirmed(confirmed, delivery, onReversed !== undefined);
    return undefined;
  } catch (error) {
    return isClosing(error) ? { outcome: 'closing' } : { outcome: 'unconfirmed', error: toReason(error) };
  }
}

/**
 * Gives the delivery a callback with the same id, event and facts, or makes it that of the reversal of its transfer: a
 * success or a failure that the service has taken back since must not run its handler. Throws UNCONFIRMED otherwise.
 */
function takeConfirmed<C extends CallbackShape>(
  confirmed: C | undefined,
  delivery: Delivery<C>,
  takesReversed: boolean,
): void {
  const { id, event, fingerprint } = delivery;
  // Callers from JavaScript may return anything.
  const { data } = (confirmed ?? {}) as { data?: CallbackShape['data'] };
  if (confirmed !== undefined && data?.id === id) {
    if (confirmed.event === event && haveSameFacts(toFingerprint(data), fingerprint)) {
      delivery.callback = confirmed;
      return;
    }
    if (takesReversed && confirmed.event === finalEvents.REVERSED && data.status === 'REVERSED') {
      const fields = readFields(confirmed);
      if (haveSameMoney(fields, parseFingerprint(fingerprint) ?? {})) {
        delivery.becomeReversal(confirmed, fields);
        return;
      }
    }
  }
  throw new TransferCallbackError(
    'UNCONFIRMED',
    'Expected `confirm` to return a callback with the same id, event and facts; they differ.',
  );
}
