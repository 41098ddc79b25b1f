import { TransferCallbackError, toReason } from '../lib/errors.js';
import { describeIssues } from '../lib/standard-schema.js';
import type { CallbackShape, OtherEvent } from './callback.js';
import type { Delivery } from './delivery.js';
import { haveSameFacts, haveSameMoney, isSameAmount, parseFingerprint, toFingerprint } from './facts.js';
import { readFields, type CallbackFields } from './fields.js';
import { isClosing, type InFlight } from './in-flight.js';
import { isQueried } from './input.js';
import type { Confirm, ResolvedOptions } from './options.js';
import type { Ending } from './outcomes.js';
import type { PayoutService } from './payout-service.js';
import { traceConfirm } from './trace.js';
import { validateCallback } from './validate.js';

/**
 * Calls `confirm`, and gives the delivery the callback that it returns. Resolves with how the delivery ends otherwise:
 * `closing` if the receiver closes, and `unconfirmed` if `confirm` throws or is late, or if the id, event or facts
 * differ. Never rejects.
 */
export async function confirmCallback<C extends CallbackShape, Tx>(
  delivery: Delivery<C>,
  confirm: Confirm<C>,
  {
    confirmTimeoutMs,
    service,
    onReversed,
  }: Pick<ResolvedOptions<C, Tx>, 'confirmTimeoutMs' | 'service' | 'onReversed'>,
  inFlight: InFlight,
): Promise<Ending | undefined> {
  const { callback, id, name, source } = delivery;
  const lateError = () =>
    new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not finish within ${confirmTimeoutMs} ms.`);
  try {
    const confirmed = await inFlight.call(id, confirmTimeoutMs, lateError, (signal) =>
      traceConfirm(delivery, () => confirm(callback, { delivery: name, source, signal })),
    );
    takeConfirmed(delivery, readConfirmed(confirmed, service), onReversed !== undefined);
    return undefined;
  } catch (error) {
    return isClosing(error) ? { outcome: 'closing' } : { outcome: 'unconfirmed', error: toReason(error) };
  }
}

interface Confirmed<C extends CallbackShape> {
  readonly callback: C;
  readonly fields: CallbackFields;
}

/** Reads what `confirm` has returned. Throws UNCONFIRMED. */
function readConfirmed<C extends CallbackShape>(
  confirmed: unknown,
  service: PayoutService<C | OtherEvent>,
): Confirmed<C> {
  // Callers from JavaScript may return anything.
  if (!isQueried(confirmed)) return { callback: confirmed as C, fields: readFields(confirmed, 'confirm') };
  const reading = validateCallback(confirmed.callback, service, true);
  if (reading.kind === 'callback' && reading.fields.event !== 'other') {
    return { callback: reading.callback as C, fields: reading.fields };
  }
  const issues = reading.kind === 'invalid' ? reading.issues : [{ path: [], message: 'It is not final' }];
  throw new TransferCallbackError(
    'UNCONFIRMED',
    `The transfer that was read is no callback: ${describeIssues(issues)}.`,
  );
}

/**
 * Gives the delivery a callback with the same id, event and facts, or makes it that of the reversal of its transfer: a
 * success or a failure that the service has taken back since must not run its handler. Throws UNCONFIRMED otherwise.
 */
function takeConfirmed<C extends CallbackShape>(
  delivery: Delivery<C>,
  { callback, fields }: Confirmed<C>,
  takesReversals: boolean,
): void {
  const { id, event, fingerprint } = delivery;
  if (fields.id === id) {
    if (fields.event === event && haveSameFacts(toFingerprint(fields), fingerprint)) {
      delivery.callback = callback;
      return;
    }
    const isReversal = takesReversals && fields.event === 'transfer.reversed' && fields.status === 'REVERSED';
    if (isReversal && haveSameMoney(fields, parseFingerprint(fingerprint) ?? {})) {
      delivery.becomeReversal(callback, fields);
      return;
    }
  }
  throw new TransferCallbackError(
    'UNCONFIRMED',
    `Expected \`confirm\` to return a callback with the same ${findDifferences(delivery, fields).join(', ')}. The callback ` +
      'was forged or changed, or the service writes it otherwise in its response, such as an amount in another unit.',
  );
}

/** Names the fields of a callback that differ from what was read. Their values may be personal. */
function findDifferences({ id, event, fingerprint }: Delivery<CallbackShape>, fields: CallbackFields): string[] {
  const facts = parseFingerprint(fingerprint);
  return [
    ...(fields.id === id ? [] : ['id']),
    ...(fields.event === event ? [] : ['event']),
    ...(['status', 'currency', 'externalId'] as const).filter((name) => facts?.[name] !== fields[name]),
    ...(isSameAmount(facts?.amount, fields.amount) ? [] : ['amount']),
  ];
}
