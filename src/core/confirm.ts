import { describeGiven } from '../lib/checks.js';
import { TransferCallbackError, toReason } from '../lib/errors.js';
import { describeIssues } from '../lib/standard-schema.js';
import type { CallbackShape } from './callback.js';
import type { Delivery } from './delivery.js';
import {
  hasFactsOf,
  haveSameFacts,
  haveSameMoney,
  isRefund,
  isSameAmount,
  parseFingerprint,
  toFingerprint,
} from './facts.js';
import type { ReceiverParts } from './handle.js';
import type { Confirm } from './options.js';
import type { Ending } from './outcomes.js';
import type { CallbackFields, PayoutService, Reading } from './payout-service.js';
import { confirmChannel, traceConfirm } from './trace.js';
import { validateCallback } from './validate.js';

/**
 * Calls `confirm`, and gives the delivery what the service sends, if that is returned. Resolves with how the delivery
 * ends otherwise: `closing` if the receiver closes, and `unconfirmed` if `confirm` throws or is late, or if the id,
 * event or facts differ. Never rejects.
 */
export async function confirmCallback(
  delivery: Delivery,
  confirm: Confirm<CallbackShape>,
  { options, inFlight }: ReceiverParts,
): Promise<Ending | undefined> {
  const { confirmTimeoutMs, service, onReversed } = options;
  const { id, name, source } = delivery;
  const callback = delivery.callback as CallbackShape;
  const lateError = () =>
    new TransferCallbackError('CONFIRM_TIMEOUT', `\`confirm\` did not finish within ${confirmTimeoutMs} ms.`);
  try {
    const confirmed = await inFlight.call(id, confirmTimeoutMs, lateError, (signal) => {
      const call = (): unknown => confirm(callback, { delivery: name, source, signal });
      return confirmChannel.start.hasSubscribers ? traceConfirm(delivery, call) : call();
    });
    const read =
      confirmed === true ? readGiven(callback, delivery.fingerprint) : readReturned(confirmed, callback, service);
    takeConfirmed(delivery, read, onReversed !== undefined);
    return undefined;
  } catch (error) {
    return inFlight.wasAborted(error) ? { outcome: 'closing' } : { outcome: 'unconfirmed', error: toReason(error) };
  }
}

type Confirmed = Pick<Extract<Reading, { kind: 'callback' }>, 'callback' | 'fields'>;

/** Reads the callback again, which `confirm` may have changed in place. What a schema has left out is as before. */
function readGiven(callback: CallbackShape, fingerprint: string): Confirmed {
  const { event, data } = callback;
  const sent = parseFingerprint(fingerprint);
  const { id, externalId, status, amount = sent?.amount, currency = sent?.currency } = data;
  const fields = { event, id, externalId, status, amount, currency, type: undefined, timestamp: undefined };
  return { callback, fields };
}

/** Reads what the service sends for the transfer. Throws UNCONFIRMED. */
function readReturned(returned: unknown, { data }: CallbackShape, service: PayoutService): Confirmed {
  // A schema would read it twice: a fee that it converts would be converted again.
  const isOwn = (returned as Partial<CallbackShape> | null | undefined)?.data === data;
  if (isOwn || typeof returned !== 'object' || returned === null) {
    const got = isOwn ? 'the callback that it was given' : describeGiven(returned);
    throw unconfirmed(
      `Expected \`confirm\` to return \`true\`, or what the service sends for the transfer, got ${got}.`,
    );
  }
  const reading = validateCallback(returned, service, true);
  if (reading.kind === 'callback' && reading.fields.event !== 'other') return reading;
  const issues = reading.kind === 'invalid' ? reading.issues : [{ path: [], message: 'It is not final' }];
  throw unconfirmed(`The transfer that was read is no callback: ${describeIssues(issues)}.`);
}

/**
 * Gives the delivery a callback with the same id, event and facts. A failure or a reversal may lack facts, which the
 * delivery then gets. If the service has reversed the transfer since, the delivery becomes the reversal, because the
 * handler of its success or failure must not run. Throws UNCONFIRMED otherwise.
 */
function takeConfirmed(delivery: Delivery, { callback, fields }: Confirmed, takesReversals: boolean): void {
  const { id, event, fingerprint } = delivery;
  if (fields.id === id) {
    if (fields.event === event && haveSameFacts(toFingerprint(fields), fingerprint)) {
      delivery.callback = callback;
      return;
    }
    const received = parseFingerprint(fingerprint) ?? {};
    // The callback of a failure may lack its amount.
    const isWhole = fields.event === event && isRefund(fields) && hasFactsOf(fields, received);
    const isReversal = takesReversals && fields.event === 'transfer.reversed' && fields.status === 'REVERSED';
    if (isWhole || (isReversal && haveSameMoney(fields, received))) {
      delivery.take(callback, fields);
      return;
    }
  }
  throw unconfirmed(
    `Expected \`confirm\` to confirm the ${findDifferences(delivery, fields).join(', ')} of the callback. It was forged or ` +
      'changed, or the service writes it otherwise in its response, such as an amount in another unit.',
  );
}

function unconfirmed(message: string): TransferCallbackError {
  return new TransferCallbackError('UNCONFIRMED', message);
}

/** Names the fields of a callback that differ from what was read. Their values may be personal. */
function findDifferences({ id, event, fingerprint }: Delivery, fields: CallbackFields): string[] {
  const facts = parseFingerprint(fingerprint);
  return [
    ...(fields.id === id ? [] : ['id']),
    ...(fields.event === event ? [] : ['event']),
    ...(['status', 'currency', 'externalId'] as const).filter((name) => facts?.[name] !== fields[name]),
    ...(isSameAmount(facts?.amount, fields.amount) ? [] : ['amount']),
  ];
}
