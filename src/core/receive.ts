import { toPrintable } from '../lib/text.js';
import type { CallbackShape } from './callback.js';
import { confirmCallback } from './confirm.js';
import { Delivery, reconciliation, type Arrival } from './delivery.js';
import { handleClaimed, type ReceiverParts } from './handle.js';
import { isRefused, isUnreadable, validateCallback } from './validate.js';
import {
  special,
  type Ending,
  type Ignored,
  type Invalid,
  type OutcomeRow,
  type TransferCallbackOutcome,
  type Unauthorized,
} from './outcomes.js';
import { toIds, type Reading } from './payout-service.js';
import { report } from './report.js';
import { refuseEarly, verifySender, type VerifySender } from './verify.js';

/**
 * Runs the steps of a delivery: validate, verify, confirm, claim, handle, report. An event of `onOther` is not
 * confirmed. Never rejects.
 */
export async function receiveCallback(
  arrival: Arrival,
  input: unknown,
  verify: VerifySender<CallbackShape> | undefined,
  parts: ReceiverParts,
): Promise<TransferCallbackOutcome> {
  parts.inFlight.begin();
  if (isRefused(input)) return endUnread(arrival, refuseEarly(input), parts);
  const { service, onOther, verifyTimeoutMs } = parts.options;
  // Reconciliation reads transfers only: one that `read` turns into another event would never be handled as a transfer.
  const takesOther = onOther !== undefined && arrival.source !== reconciliation;
  const reading: Reading = isUnreadable(input)
    ? { kind: 'invalid', issues: input.issues, ids: {}, error: input.error }
    : validateCallback(input, service, takesOther);
  if (verify !== undefined) {
    const refusal = await verifySender(verify, reading, verifyTimeoutMs);
    if (refusal !== undefined) return endUnread(arrival, refusal, parts);
  }
  if (reading.kind === 'invalid') {
    const { issues, ids, error } = reading;
    const why = { issues, verified: verify !== undefined, ...ids, ...(error !== undefined && { error }) };
    return endUnread(arrival, { outcome: 'invalid', ...why }, parts);
  }
  if (reading.kind !== 'callback') return endUnread(arrival, acknowledge(reading, parts), parts);
  const delivery = new Delivery(arrival, reading.callback, reading.fields);
  if (reading.hasWrongTime === true) warnOfTime({ delivery: delivery.name, id: delivery.id }, parts);
  return end(delivery.toOutcome(await processDelivery(delivery, parts)), parts);
}

/** Warns once for each receiver. */
function warnOfTime(details: object, parts: ReceiverParts): void {
  if (parts.hasWarnedOfTime) return;
  parts.hasWarnedOfTime = true;
  const message = 'Expected `read` to return `timestamp` as ISO 8601 with `Z` or an offset; this is logged once.';
  parts.options.logger.warn(details, message);
}

/** Ends a delivery that the definition of the service declares to need no handler. */
function acknowledge(reading: Extract<Reading, { kind: 'ignored' | 'pending' }>, { ignored }: ReceiverParts): Ignored {
  const type = toPrintable(reading.kind === 'ignored' ? reading.name : reading.state);
  if (reading.kind === 'ignored') return { outcome: 'ignored', type, count: ignored.count(type) };
  const { id, externalId } = reading.ids;
  return { outcome: 'ignored', ...toIds(id && toPrintable(id), externalId && toPrintable(externalId)), type };
}

/**
 * Ends a delivery for which `receive` was called with wrong options. No handler runs, because `fault` may be about a
 * misspelt `verify`. Never rejects.
 */
export function refuseCall(arrival: Arrival, fault: unknown, parts: ReceiverParts): Promise<TransferCallbackOutcome> {
  parts.inFlight.begin();
  return Promise.resolve(endUnread(arrival, { outcome: 'unauthorized', error: fault }, parts, special.miscalled));
}

async function processDelivery(delivery: Delivery, parts: ReceiverParts): Promise<Ending> {
  const { lines, options } = parts;
  if (lines.isClosed) return { outcome: 'closing' };
  if (options.confirm !== undefined && delivery.event !== 'other') {
    const ending = await confirmCallback(delivery, options.confirm, parts);
    if (ending !== undefined) return ending;
  }
  return handleClaimed(delivery, await lines.claim(delivery), parts);
}

/** Ends a delivery without a callback that could be handled. */
function endUnread(
  { name, source, startedAt }: Arrival,
  ending: Ignored | Invalid | Unauthorized,
  parts: ReceiverParts,
  row?: OutcomeRow,
): TransferCallbackOutcome {
  return end({ delivery: name, source, durationMs: performance.now() - startedAt, ...ending }, parts, row);
}

/** Reports the outcome, and ends the delivery. */
function end(
  outcome: TransferCallbackOutcome,
  { options, inFlight }: ReceiverParts,
  row?: OutcomeRow,
): TransferCallbackOutcome {
  report(outcome, options, row);
  inFlight.end();
  return outcome;
}
