import type { BankPayout, MobileMoneyPayout, TransferCallback, TransferFacts } from '../core/callback.js';

/** What is known of a transfer from its creation on. */
export type SandboxFacts = Omit<TransferFacts, 'timestamp'> & { payout: MobileMoneyPayout | BankPayout };

/** Always draws as much as for any other transfer, so that ids do not depend on what the requests before carried. */
export type DrawFacts = (request: Record<string, unknown>) => SandboxFacts;

/**
 * Makes the facts of one transfer after another from a seed. Beside `callbackUrl` the fields of a creation are not
 * documented (service §2.2). A guess: they are named like those of the transaction; one that is missing or of
 * another type gets a value made up.
 */
export function seededFacts(seed: number): DrawFacts {
  const draw = mulberry32(seed);
  const hex = (): string => draw().toString(16).padStart(8, '0');
  const variants = ['8', '9', 'a', 'b'];

  return (request) => {
    const [a, b, c, d] = [hex(), hex(), hex(), hex()];
    const variant = variants[draw() % variants.length];
    const short = hex();
    const text = (name: string, otherwise: string): string => {
      const value = request[name];
      return typeof value === 'string' && value !== '' ? value : otherwise;
    };
    const payout = payoutOf(request);
    return {
      id: `${a}-${b.slice(0, 4)}-4${b.slice(5)}-${String(variant)}${c.slice(1, 4)}-${c.slice(4)}${d}`,
      externalId: text('externalId', `payout-${short}`),
      reference: text('reference', `REF-${short}`),
      amount: typeof request.amount === 'number' ? request.amount : 15_000,
      currency: text('currency', 'XAF'),
      payout,
      provider: text('provider', payout.paymentMethod === 'bank' ? 'Afriland First Bank' : 'MTN'),
      externalReference: `PRV-${short}`,
      vouchercode: '',
    };
  };
}

function payoutOf({ paymentMethod, walletNumber, bankAccount }: Record<string, unknown>): SandboxFacts['payout'] {
  if (paymentMethod === 'bank') {
    // The fields of the account are not documented: this one is made up.
    const account = isObject(bankAccount) ? bankAccount : { accountNumber: '10005000010123456789' };
    return { paymentMethod, walletNumber: null, bankAccount: account };
  }
  const number = typeof walletNumber === 'string' ? walletNumber : '237670000000';
  return { paymentMethod: 'mobile_money', walletNumber: number, bankAccount: null };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A transfer that is not final, as a creation or a query answers it. A guess, `PENDING` included: no status but the
 * two final ones is documented (service §3.4). `timestamp` is null, since it tells when the transfer became final.
 */
export function pendingTransaction(facts: SandboxFacts) {
  return transaction(facts, { status: 'PENDING', failureReason: null, timestamp: null });
}

/** The callback that announces a transfer's outcome, with every documented field (service §2.1) in its order. */
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
  { id, externalId, reference, amount, currency, payout, provider, externalReference, vouchercode }: SandboxFacts,
  { status, failureReason, timestamp }: { status: S; failureReason: R; timestamp: T },
) {
  return {
    id,
    externalId,
    reference,
    status,
    amount,
    currency,
    ...payout,
    provider,
    failureReason,
    timestamp,
    externalReference,
    vouchercode,
  };
}

/** A small generator of 32 bits that repeats itself from a seed; for identifiers, never for secrets. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}
