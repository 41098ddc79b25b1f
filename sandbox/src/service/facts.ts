import type { TransferCallback, TransferFacts } from '../../../src/core/callback.js';
import type { Creation } from './creation.js';

/** The fields of a transfer that are known when it is created. */
export type SandboxFacts = Omit<TransferFacts, 'timestamp'> & Pick<Creation, 'payout'>;

/** Draws the same amount for every creation, so that ids depend only on the seed and the order. */
type DrawFacts = (creation: Creation) => SandboxFacts;

/** Returns a function that makes the facts of transfers from a seed. It makes up what the creation leaves out. */
export function seededFacts(seed: number): DrawFacts {
  const draw = mulberry32(seed);
  const hex = (): string => draw().toString(16).padStart(8, '0');
  const variants = ['8', '9', 'a', 'b'];

  return ({ externalId, reference, amount, currency, provider, payout }) => {
    const [a, b, c, d] = [hex(), hex(), hex(), hex()];
    const variant = variants[draw() % variants.length];
    const [short, long] = [hex(), hex() + hex()];
    return {
      id: `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${String(variant)}${c.slice(1, 4)}-${c.slice(4)}${d}`,
      externalId: externalId ?? `payout-${long}`,
      reference: reference ?? `REF-${short}`,
      amount: amount ?? 15_000,
      currency: currency ?? 'XAF',
      payout,
      provider: provider ?? (payout.paymentMethod === 'bank' ? 'Afriland First Bank' : 'MTN'),
      externalReference: `PRV-${short}`,
      vouchercode: '',
    };
  };
}

/**
 * Returns a transfer that is not final, as in the response to a creation or a query. Everything here is a guess, even
 * `PENDING`: only the two final statuses are documented (service §3.4). `timestamp` is null, because it is the time at
 * which a transfer becomes final.
 */
export function pendingTransaction(facts: SandboxFacts) {
  return transaction(facts, { status: 'PENDING', failureReason: null, timestamp: null });
}

/** Returns the callback for a transfer's outcome, with all documented fields in their order (service §2.1). */
export function callbackOf(facts: SandboxFacts, outcome: 'SUCCESS' | 'FAILED', finalAtMs: number): TransferCallback {
  const timestamp = new Date(finalAtMs).toISOString();
  return outcome === 'SUCCESS'
    ? { event: 'transfer.success', data: transaction(facts, { status: outcome, failureReason: null, timestamp }) }
    : {
        event: 'transfer.failed',
        data: transaction(facts, { status: outcome, failureReason: 'Beneficiary not found', timestamp }),
      };
}

function transaction<S extends string, R extends string | null, T extends string | null>(
  { id, externalId, reference, amount, currency, payout, provider, ...rest }: SandboxFacts,
  { status, failureReason, timestamp }: { status: S; failureReason: R; timestamp: T },
) {
  const asked = { id, externalId, reference, status, amount, currency, ...payout };
  return { ...asked, provider, failureReason, timestamp, ...rest };
}

/** Generates 32-bit numbers that depend only on the seed. They are predictable: never use them for secrets. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}
