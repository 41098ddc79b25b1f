import type { SafeLogger } from '../lib/logger.js';
import type { CallbackShape, OtherEvent } from './callback.js';
import { HeldClaim, type Shared } from './claim/held-claim.js';
import type { Lines } from './claim/lines.js';
import { confirmCallback } from './confirm.js';
import { Delivery, reconciliation, toCommonFields, type Arrival } from './delivery.js';
import { runHandler } from './handle.js';
import { isRefused } from './input.js';
import type { ResolvedOptions } from './options.js';
import { special, type Ending, type OutcomeRow, type TransferCallbackOutcome } from './outcomes.js';
import { report } from './report.js';
import { validateCallback } from './validate.js';
import { refuseEarly, verifySender, type VerifySender } from './verify.js';

/** What all deliveries of a receiver share. */
export interface ReceiverParts<C extends CallbackShape, Tx> extends Shared<Tx> {
  readonly options: ResolvedOptions<C, Tx> & { readonly logger: SafeLogger };
  readonly lines: Lines<Tx>;
}

/**
 * Runs the steps of a delivery: validate, verify, confirm, claim, handle, report. An event of `onOther` is not
 * confirmed. Never rejects.
 */
export async function receiveCallback<C extends CallbackShape, Tx>(
  arrival: Arrival,
  input: unknown,
  verify: VerifySender<C> | undefined,
  parts: ReceiverParts<C, Tx>,
): Promise<TransferCallbackOutcome> {
  parts.inFlight.begin();
  if (isRefused(input)) return end({ ...toCommonFields(arrival), ...refuseEarly(input) }, parts);
  const { schema, onOther, verifyTimeoutMs } = parts.options;
  // Reconciliation reads transfers only: one that became another event would be acknowledged, and never handled.
  const takesOther = onOther !== undefined && arrival.source !== reconciliation;
  const validated = validateCallback(input, schema, takesOther);
  if (verify !== undefined) {
    const refusal = await verifySender(verify, validated, verifyTimeoutMs);
    if (refusal !== undefined) return end({ ...toCommonFields(arrival), ...refusal }, parts);
  }
  if ('issues' in validated)
    return end({ ...toCommonFields(arrival), ...validated, verified: verify !== undefined }, parts);
  const delivery = new Delivery(arrival, validated.callback, validated.fields);
  return end(delivery.toOutcome(await processDelivery(delivery, parts)), parts);
}

/**
 * Ends a delivery for which `receive` was called with wrong options. No handler runs, because `fault` may be about a
 * misspelt `verify`. Never rejects.
 */
export function refuseCall<C extends CallbackShape, Tx>(
  arrival: Arrival,
  fault: unknown,
  parts: ReceiverParts<C, Tx>,
): Promise<TransferCallbackOutcome> {
  parts.inFlight.begin();
  const outcome = { ...toCommonFields(arrival), outcome: 'unauthorized', error: fault } as const;
  return Promise.resolve(end(outcome, parts, special.miscalled));
}

async function processDelivery<C extends CallbackShape, Tx>(
  delivery: Delivery<C | OtherEvent>,
  { lines, inFlight, options }: ReceiverParts<C, Tx>,
): Promise<Ending> {
  if (lines.isClosed) return { outcome: 'closing' };
  if (options.confirm !== undefined && delivery.event !== 'other') {
    const confirmed = await confirmCallback(
      delivery as Delivery<C>,
      options.confirm,
      options.confirmTimeoutMs,
      inFlight,
    );
    if ('outcome' in confirmed) return confirmed;
    delivery.callback = confirmed.callback;
  }
  const claimed = await lines.claim(delivery);
  if (claimed instanceof HeldClaim) return runHandler(delivery, claimed, options);
  switch (claimed.state) {
    case 'settled':
      return delivery.compareWith(claimed.fingerprint);
    case 'unavailable':
      return { outcome: 'store_unavailable', error: claimed.error };
    case 'in_progress':
    case 'closing':
      return { outcome: claimed.state };
  }
}

/** Reports the outcome, and ends the delivery. */
function end<C extends CallbackShape, Tx>(
  outcome: TransferCallbackOutcome,
  { options, inFlight }: ReceiverParts<C, Tx>,
  row?: OutcomeRow,
): TransferCallbackOutcome {
  report(outcome, options, row);
  inFlight.end();
  return outcome;
}
