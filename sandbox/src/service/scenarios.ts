import { invalidArgument } from '../../../src/lib/checks.js';
import { parseJson } from '../../../src/lib/text.js';
import { isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';

/** The differences between a scenario and a transfer that succeeds and is reported immediately. */
export interface Behaviour {
  readonly description: string;
  readonly outcome?: 'FAILED';
  /** The time from the final status to the first attempt, in milliseconds of sandbox time. */
  readonly callbackAfterMs?: number;
  readonly silent?: true;
  /** The transfer becomes final, and is reported, before the service responds to its creation. */
  readonly early?: true;
  readonly series?: SeriesBehaviour;
  /** The time from the acknowledged attempt to the other final status, in milliseconds of sandbox time. */
  readonly flipAfterMs?: number;
  /** How long a query still shows PENDING after the final status, in milliseconds of sandbox time. */
  readonly queryLagsMs?: number;
  readonly failingQueries?: number;
}

/** The differences between the attempts of a scenario and the documented ones (service §6). */
export interface SeriesBehaviour {
  /** How many copies of the first attempt are sent concurrently. */
  readonly copies?: number;
  /** How many attempts never reach the merchant. */
  readonly lost?: number;
  /** One more attempt follows the one that was acknowledged. */
  readonly repeated?: true;
  readonly pieces?: true;
  /** The fault of the first attempt. */
  readonly firstAttempt?: 'response dropped' | 'cut short' | 'text/plain';
}

const table = {
  success: { description: 'It succeeds, and its callback follows immediately.' },
  failed: { description: 'It fails, with a failureReason.', outcome: 'FAILED' },
  'no-callback': { description: 'No callback is sent; only a query tells the final status.', silent: true },
  'late-callback': {
    description: 'The callback is sent 10 minutes after the final status.',
    callbackAfterMs: 600_000,
  },
  'early-callback': { description: 'The callback arrives before the creation returns.', early: true },
  duplicate: {
    description: 'The acknowledged callback is sent again 30 s later.',
    series: { repeated: true },
  },
  burst: { description: 'Ten copies of the callback arrive concurrently.', series: { copies: 10 } },
  'lost-attempts': {
    description: 'The first two attempts are lost; the third arrives.',
    series: { lost: 2 },
  },
  'response-lost': {
    description: 'The response to the first attempt is lost.',
    series: { firstAttempt: 'response dropped' },
  },
  'slow-sender': { description: 'The body arrives in small pieces with pauses.', series: { pieces: true } },
  flip: {
    // The documentation excludes this (service §3.2), but other services do it.
    description: 'FAILED is acknowledged; then SUCCESS for the same id.',
    outcome: 'FAILED',
    flipAfterMs: 10_000,
  },
  malformed: {
    description: 'The first attempt is JSON cut short; the others are whole.',
    series: { firstAttempt: 'cut short' },
  },
  'wrong-content-type': {
    description: 'The first attempt is text/plain; the others are JSON.',
    series: { firstAttempt: 'text/plain' },
  },
  'query-lags': { description: 'Queries show PENDING until 60 s after the final status.', queryLagsMs: 60_000 },
  'query-fails': { description: 'The first two queries respond 500.', failingQueries: 2 },
} satisfies Record<string, Behaviour>;

/** The name of a scenario, as listed in `transferScenarios`. */
export type TransferScenario = keyof typeof table;

export const behaviours: Readonly<Record<TransferScenario, Behaviour>> = table;

const names = Object.keys(behaviours) as TransferScenario[];

/**
 * Every scenario by name, with one line on what happens. `flip` contradicts the documentation (service §3.2).
 *
 * @example
 * for (const { name, description } of transferScenarios) console.log(name, description);
 */
export const transferScenarios: readonly { readonly name: TransferScenario; readonly description: string }[] =
  names.map((name) => ({ name, description: behaviours[name].description }));

/** Returns a scenario by its name. Throws INVALID_ARGUMENT. */
export function requireScenario(value: unknown): TransferScenario {
  const scenario = names.find((name) => name === value);
  if (scenario !== undefined) return scenario;
  throw invalidArgument('scenario', `one of ${names.join(', ')}`, value, "scenario: 'success'");
}

const longestFirst = names.toSorted((a, b) => b.length - a.length);

/** Returns the scenario with which an externalId begins, as in `lost-attempts-42`. The longest name wins. */
export function scenarioOf(externalId: string): TransferScenario | undefined {
  return longestFirst.find((name) => externalId === name || externalId.startsWith(`${name}-`));
}

/** What a judge sees of an attempt. */
interface Judged {
  readonly number: number;
  readonly body: string;
  readonly contentType: string;
  readonly response: AttemptResponse;
}

/** How the bodies of a service are read here. */
export interface Dialect {
  readonly contentType: string;
  /** Returns the final status that a body reports; `undefined` for one that cannot be read. */
  findStatus(body: string): string | undefined;
}

const documented: Dialect = {
  contentType: 'application/json',
  findStatus(body) {
    const { data } = (parseJson(body) ?? {}) as { data?: { status?: string } | null };
    return data?.status;
  },
};

/** What a right endpoint does with an attempt: `either` is right in both ways. */
export interface Expected<Attempt extends Judged> {
  readonly does: 'acknowledge' | 'refuse' | 'either';
  /** The acknowledged attempt that this one contradicts. */
  readonly contradicted?: Attempt;
}

/** Returns what a right endpoint does with an attempt, after the attempts of the same transfer `before` it. */
export function expectOf<Attempt extends Judged>(
  { body, contentType }: Attempt,
  before: readonly Attempt[],
  dialect = documented,
): Expected<Attempt> {
  const status = dialect.findStatus(body);
  if (status === undefined) return { does: 'refuse' };
  const contradicted = before.findLast((each) => {
    const sent = dialect.findStatus(each.body);
    return isAcknowledged(each) && sent !== undefined && sent !== status;
  });
  if (contradicted !== undefined) return { does: 'refuse', contradicted };
  // An endpoint may read JSON under any type. One that does not must refuse it.
  return { does: contentType === dialect.contentType ? 'acknowledge' : 'either' };
}

/** Whether the endpoint responded as it should in a scenario, and why in one sentence. */
export interface Verdict {
  readonly passed: boolean;
  /** Whether a right endpoint does more, although no document demands it. */
  readonly isLess?: true;
  readonly because: string;
}

/**
 * Judges an endpoint by its responses alone: what its handlers did, only the endpoint knows. `attempts` are all the
 * attempts of one transfer, in their order.
 */
export function judgeAttempts(scenario: TransferScenario, attempts: readonly Judged[], dialect = documented): Verdict {
  const last = attempts.at(-1);
  if (last === undefined) return passed('No callback was sent: in this scenario only a query tells the final status.');
  const expected = attempts.map((attempt, index) => expectOf(attempt, attempts.slice(0, index), dialect));
  const wrong = attempts.findIndex((attempt, index) => expected[index]?.does === 'refuse' && isAcknowledged(attempt));
  if (wrong !== -1) {
    if (expected[wrong]?.contradicted === undefined) return failed('JSON that was cut short was acknowledged.');
    const because = 'After FAILED, SUCCESS was acknowledged for the same id: a payout may count twice.';
    return { passed: true, isLess: true, because };
  }
  const acknowledged = attempts.find(isAcknowledged);
  if (acknowledged === undefined) return failed(`None of ${attempts.length} attempts was acknowledged.`);
  const { flipAfterMs, series: { repeated = false } = {} } = behaviours[scenario];
  if (flipAfterMs !== undefined) {
    return passed('FAILED was acknowledged; the contradiction that followed it was refused.');
  }
  if (repeated && !isAcknowledged(last)) {
    return failed('The callback was acknowledged, but refused when it came again.');
  }
  const { number, contentType } = acknowledged;
  return contentType === dialect.contentType
    ? passed(`The callback was acknowledged at attempt ${number}.`)
    : passed(`JSON under ${contentType} was acknowledged: right if your app has read it.`);
}

function isAcknowledged({ response }: Judged): boolean {
  return isAcknowledgement(response);
}

const passed = (because: string): Verdict => ({ passed: true, because });
const failed = (because: string): Verdict => ({ passed: false, because });
