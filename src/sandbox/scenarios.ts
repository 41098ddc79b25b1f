/** How a transfer goes, and its callback with it: a name of `transferScenarios`. */
export type TransferScenario =
  | 'success'
  | 'failed'
  | 'no-callback'
  | 'late-callback'
  | 'early-callback'
  | 'duplicate'
  | 'burst'
  | 'lost-attempts'
  | 'answer-lost'
  | 'slow-sender'
  | 'flip'
  | 'malformed'
  | 'wrong-content-type'
  | 'query-lags'
  | 'query-fails';

/** What a scenario changes about a transfer that succeeds and is announced at once. */
export interface Conduct {
  readonly description: string;
  readonly outcome?: 'FAILED';
  /** From final to the first attempt, in milliseconds of sandbox time. */
  readonly callbackAfterMs?: number;
  readonly silent?: true;
  /** Final, and its callback answered, before the creation is. */
  readonly early?: true;
  readonly delivery?: DeliveryConduct;
  /** From the acknowledgement of the first outcome to the other one, in milliseconds of sandbox time. */
  readonly flipAfterMs?: number;
  /** For how long after final a query still says PENDING, in milliseconds of sandbox time. */
  readonly queryLagsMs?: number;
  readonly failingQueries?: number;
}

/** What a scenario changes about the attempts of a callback; without one they go as documented (service §6). */
export interface DeliveryConduct {
  /** The first attempt is this many, all at once. */
  readonly copies?: number;
  /** So many attempts never reach the merchant. */
  readonly lost?: number;
  /** One more attempt follows the one that was acknowledged. */
  readonly repeated?: true;
  readonly pieces?: true;
  /** What is wrong with the first attempt. */
  readonly firstAttempt?: 'answer dropped' | 'cut short' | 'text/plain';
}

export const conducts: Readonly<Record<TransferScenario, Conduct>> = {
  success: { description: 'The transfer succeeds and its callback follows at once.' },
  failed: { description: 'The transfer fails, with a failureReason.', outcome: 'FAILED' },
  'no-callback': { description: 'No callback ever comes; only a query tells the outcome.', silent: true },
  'late-callback': {
    description: 'The callback comes 10 minutes after the outcome; a query knows it meanwhile.',
    callbackAfterMs: 600_000,
  },
  'early-callback': {
    description: 'The callback is delivered before the creation of the transfer has been answered.',
    early: true,
  },
  duplicate: {
    description: 'The callback is acknowledged, and delivered once more 30 s later.',
    delivery: { repeated: true },
  },
  burst: { description: 'Ten copies of the callback at once.', delivery: { copies: 10 } },
  'lost-attempts': {
    description: 'The first two attempts are lost on the way; the third arrives.',
    delivery: { lost: 2 },
  },
  'answer-lost': {
    description: 'The answer to the first attempt is lost, so that the callback comes again.',
    delivery: { firstAttempt: 'answer dropped' },
  },
  'slow-sender': { description: 'The body arrives in small pieces with pauses.', delivery: { pieces: true } },
  flip: {
    description: 'FAILED is announced and acknowledged, then SUCCESS for the same id (the documentation rules it out).',
    outcome: 'FAILED',
    flipAfterMs: 10_000,
  },
  malformed: {
    description: 'The first attempt is JSON cut short; those after it are right.',
    delivery: { firstAttempt: 'cut short' },
  },
  'wrong-content-type': {
    description: 'The first attempt says text/plain; those after it are right.',
    delivery: { firstAttempt: 'text/plain' },
  },
  'query-lags': { description: 'A query says PENDING until 60 s after the outcome.', queryLagsMs: 60_000 },
  'query-fails': { description: 'The first two queries are answered 500.', failingQueries: 2 },
};

const names = Object.keys(conducts) as TransferScenario[];

/**
 * Every scenario by name, with a line on what happens. All that is not a success announced at once goes beyond the
 * documentation's happy path; `flip` contradicts it (service §3.2) because real providers do it.
 */
export const transferScenarios: readonly { readonly name: TransferScenario; readonly description: string }[] =
  names.map((name) => ({ name, description: conducts[name].description }));

export function isScenario(value: unknown): value is TransferScenario {
  return names.some((name) => name === value);
}

const longestFirst = names.toSorted((a, b) => b.length - a.length);

/** The scenario that an externalId begins with, as in `lost-attempts-42`; the longest name that fits. */
export function scenarioOf(externalId: string): TransferScenario | undefined {
  return longestFirst.find((name) => externalId === name || externalId.startsWith(`${name}-`));
}
