/** The values beside the ids that are different in each event, and in each transfer: `data.code`, `header:NAME`. */
export interface Names {
  readonly event: readonly string[];
  readonly transfer: readonly string[];
}

/** What the documents of a service say, beside its samples. */
export interface DocumentedTraits {
  /** The state after which its sample of a state that is PENDING comes, if that is not the first one. */
  readonly pendingFollows?: 'success';
  /** Whether they show a reversal after a failure. */
  readonly reversesFailures?: true;
  /** How long it waits for a response. */
  readonly patienceMs?: number;
}

/** What is needed beside a definition of examples/services. */
export interface NamedService extends DocumentedTraits {
  /** The variable in which the definition finds what its callbacks are verified with. */
  readonly variable: string;
  /** What CALLBACK_SECRET has; `undefined` if only the address can have a secret, because the service sends none. */
  readonly secret?: string;
  /** How a key of its live mode begins, if a document shows that. */
  readonly liveKey?: string;
  /** Whether CALLBACK_SECRET has the private key, and the definition the public one. */
  readonly isKeyPair?: true;
  /** The variable in which the definition finds the address that is signed. */
  readonly urlVariable?: string;
  /** Returns other options of `sign` of its verifier. */
  readonly toSignOptions?: () => object;
  readonly isForm?: true;
  /** The values beside the ids that are different in each event, and in each transfer. */
  readonly names?: Partial<Names>;
}

const pair = { secret: 'the private key, in PEM, for the public key', isKeyPair: true } as const;
const testKey = { secret: 'the test secret key', liveKey: 'sk_live_' } as const;

const transfer = (...paths: readonly string[]) => ({ names: { transfer: paths } });

export const namedServices = {
  cinetpay: { variable: 'CINETPAY_CALLBACK_SECRET', isForm: true, ...transfer('operator_transaction_id') },
  flutterwave3: { variable: 'FLUTTERWAVE_SECRET_HASH', secret: 'the secret hash' },
  flutterwave4: {
    ...{ variable: 'FLUTTERWAVE_SECRET_HASH', secret: 'the secret hash' },
    names: { event: ['webhook_id'] },
  },
  korapay: { variable: 'KORAPAY_SECRET_KEY', ...testKey },
  monnify: {
    ...{ variable: 'MONNIFY_CLIENT_SECRET', secret: 'the client secret' },
    ...transfer('eventData.transactionReference'),
  },
  mpesa: {
    variable: 'MPESA_CALLBACK_SECRET',
    // The receipt of M-Pesa is there twice.
    ...transfer('Result.TransactionID', 'Result.ResultParameters.ResultParameter.1.Value'),
  },
  mtn: { variable: 'MTN_CALLBACK_SECRET', ...transfer('financialTransactionId') },
  pawapay: {
    ...{ variable: 'PAWAPAY_PUBLIC_KEY', urlVariable: 'PAWAPAY_CALLBACK_URL', ...pair },
    toSignOptions: () => ({ dsaEncoding: 'der', headers: { 'signature-date': new Date().toISOString() } }),
    ...transfer('providerTransactionId'),
  },
  paystack: { variable: 'PAYSTACK_SECRET_KEY', ...testKey, ...transfer('data.transfer_code') },
  razorpayx: {
    ...{ variable: 'RAZORPAYX_WEBHOOK_SECRET', secret: 'the webhook secret', patienceMs: 5_000 },
    names: { event: ['header:x-razorpay-event-id'], transfer: ['payload.payout.entity.utr'] },
  },
  // `cancelled` comes before `funds_refunded`, and `bounced_back` after a success.
  wise: { variable: 'WISE_PUBLIC_KEY', ...pair, pendingFollows: 'success', reversesFailures: true },
} as const satisfies Readonly<Record<string, NamedService>>;

/** The name of a service whose definition is in this package. */
export type ServiceName = keyof typeof namedServices;
