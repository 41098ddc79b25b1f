import type { CallbackShape } from './callback.js';
import type { Claims, Granted } from './claim.js';
import { confirmCallback } from './confirm.js';
import { Delivery, measure, type Arrival } from './delivery.js';
import { handleCallback } from './handle.js';
import { HeldLease, type LeaseParts } from './held-lease.js';
import type { ResolvedOptions } from './options.js';
import type { Ending, TransferCallbackOutcome } from './outcomes.js';
import { report } from './report.js';
import { validateCallback } from './validate.js';
import { verifySender, type VerifySender } from './verify-sender.js';

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
  const isValid = 'callback' in validated;
  if (verify !== undefined) {
    const refusal = await verifySender(verify, isValid ? validated.callback : undefined, parts.options.verifyTimeoutMs);
    if (refusal !== undefined) {
      // Logged only: if the service changes a field that a verifier reads, or the app has read the body, every delivery is
      // refused, and the log line says why.
      const { issues, error } = isValid ? {} : validated;
      return end(
        { ...measure(arrival), ...(issues && { issues }), ...(error !== undefined && { error }), ...refusal },
        parts,
      );
    }
  }
  if (!isValid) return end({ ...measure(arrival), ...validated, verified: verify !== undefined }, parts);
  const delivery = new Delivery(arrival, validated.callback, validated.fields);
  return end(delivery.toOutcome(await confirmAndClaim(delivery, parts)), parts);
}

async function confirmAndClaim<C extends CallbackShape, Tx>(
  delivery: Delivery<C>,
  parts: ReceiverParts<C, Tx>,
): Promise<Ending> {
  const { claims, leases, options } = parts;
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
      return handle(callback, delivery, claim, parts);
    case 'settled':
      return delivery.compareWith(claim.fingerprint);
    case 'unavailable':
      return { outcome: 'store_unavailable', error: claim.error };
    case 'in_progress':
    case 'closing':
      return { outcome: claim.state };
  }
}

function handle<C extends CallbackShape, Tx>(
  callback: C,
  delivery: Delivery<C>,
  claim: Granted<Tx>,
  parts: ReceiverParts<C, Tx>,
): Promise<Ending> {
  const lease = new HeldLease(claim, parts.leases);
  if (parts.claims.isClosed) return lease.release().then(() => ({ outcome: 'closing' }));
  return handleCallback(callback, delivery, lease, parts.options);
}

function end<C extends CallbackShape, Tx>(
  outcome: TransferCallbackOutcome,
  { options, leases }: ReceiverParts<C, Tx>,
): TransferCallbackOutcome {
  report(outcome, options);
  leases.inFlight.end();
  return outcome;
}
