import type { CallbackShape } from './callback.js';
import type { Claims } from './claim.js';
import { confirmCallback } from './confirm.js';
import { Delivery, measure, type Arrival } from './delivery.js';
import { handleCallback } from './handle.js';
import { HeldLease, type LeaseParts } from './lease.js';
import type { ResolvedOptions } from './options.js';
import type { Ending, TransferCallbackOutcome } from './outcomes.js';
import { report } from './report.js';
import { validateCallback } from './validate.js';
import { verifySender, type VerifySender } from './verify.js';

/** What all deliveries of a receiver share. */
export interface ReceiverParts<C extends CallbackShape, Tx> {
  readonly options: ResolvedOptions<C, Tx>;
  readonly claims: Claims<Tx>;
  readonly leases: LeaseParts<Tx>;
}

/** Runs the steps of a delivery: validate, verify, confirm, claim, handle, report. Never rejects. */
export async function receiveCallback<C extends CallbackShape, Tx>(
  arrival: Arrival,
  input: unknown,
  verify: VerifySender<C> | undefined,
  parts: ReceiverParts<C, Tx>,
): Promise<TransferCallbackOutcome> {
  parts.leases.inFlight.begin();
  const validated = validateCallback(input, parts.options.schema);
  if (verify !== undefined) {
    const refusal = await verifySender(verify, input, validated, parts.options.verifyTimeoutMs);
    if (refusal !== undefined) return end({ ...measure(arrival), ...refusal }, parts);
  }
  if ('issues' in validated) return end({ ...measure(arrival), ...validated, verified: verify !== undefined }, parts);
  const delivery = new Delivery(arrival, validated.callback, validated.fields);
  return end(delivery.toOutcome(await processDelivery(delivery, parts)), parts);
}

async function processDelivery<C extends CallbackShape, Tx>(
  delivery: Delivery<C>,
  { claims, leases, options }: ReceiverParts<C, Tx>,
): Promise<Ending> {
  if (claims.isClosed) return { outcome: 'closing' };
  let { callback } = delivery;
  if (options.confirm !== undefined) {
    const confirmed = await confirmCallback(delivery, options.confirm, options.confirmTimeoutMs, leases.inFlight);
    if ('outcome' in confirmed) return confirmed;
    ({ callback } = confirmed);
  }
  const claim = await claims.claim(delivery);
  delivery.waitedMs = claim.waitedMs;
  switch (claim.state) {
    case 'claimed':
      return handleCallback(callback, delivery, new HeldLease(claim, leases), claims.isClosed, options);
    case 'settled':
      return delivery.compareWith(claim.fingerprint);
    case 'unavailable':
      return { outcome: 'store_unavailable', error: claim.error };
    case 'in_progress':
    case 'closing':
      return { outcome: claim.state };
  }
}

/** Reports the outcome, and ends the delivery. */
function end<C extends CallbackShape, Tx>(
  outcome: TransferCallbackOutcome,
  { options, leases }: ReceiverParts<C, Tx>,
): TransferCallbackOutcome {
  report(outcome, options);
  leases.inFlight.end();
  return outcome;
}
