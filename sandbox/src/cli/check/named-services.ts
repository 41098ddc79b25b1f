/** What `check` must know beside a definition of examples/services. */
export interface NamedService {
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
}

const pair = { secret: 'the private key, in PEM, for the public key', isKeyPair: true } as const;
const testKey = { secret: 'the test secret key', liveKey: 'sk_live_' } as const;

export const namedServices: Readonly<Record<string, NamedService>> = {
  cinetpay: { variable: 'CINETPAY_CALLBACK_SECRET', isForm: true },
  flutterwave3: { variable: 'FLUTTERWAVE_SECRET_HASH', secret: 'the secret hash' },
  flutterwave4: { variable: 'FLUTTERWAVE_SECRET_HASH', secret: 'the secret hash' },
  korapay: { variable: 'KORAPAY_SECRET_KEY', ...testKey },
  monnify: { variable: 'MONNIFY_CLIENT_SECRET', secret: 'the client secret' },
  mpesa: { variable: 'MPESA_CALLBACK_SECRET' },
  mtn: { variable: 'MTN_CALLBACK_SECRET' },
  pawapay: {
    ...{ variable: 'PAWAPAY_PUBLIC_KEY', urlVariable: 'PAWAPAY_CALLBACK_URL', ...pair },
    toSignOptions: () => ({ dsaEncoding: 'der', headers: { 'signature-date': new Date().toISOString() } }),
  },
  paystack: { variable: 'PAYSTACK_SECRET_KEY', ...testKey },
  razorpayx: { variable: 'RAZORPAYX_WEBHOOK_SECRET', secret: 'the webhook secret' },
  wise: { variable: 'WISE_PUBLIC_KEY', ...pair },
};
