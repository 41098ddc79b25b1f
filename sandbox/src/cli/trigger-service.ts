import { addSignature } from '../attempt/signer.js';
import { callbackSender, type PlannedAttempt, type SandboxAttempt } from '../service/series.js';
import { SandboxClock } from '../service/clock.js';
import { requireSpeed } from '../service/options.js';
import { isAcknowledgement } from '../attempt/attempt.js';
import { behaviours, type TransferScenario, type Verdict } from '../service/scenarios.js';
import { UsageError } from '../../../src/cli/arguments.js';
import { describeGiven } from '../../../src/lib/checks.js';
import type { Service } from './check/service.js';
import { toUrl, type Endpoint } from './endpoint-options.js';

/** A transfer to play. */
export interface Play {
  readonly scenario: TransferScenario | 'reversed';
  readonly endpoint: Endpoint;
  readonly externalId: string | undefined;
  readonly speed: number;
  /** Is called with each attempt when it has ended. */
  readonly record: (attempt: SandboxAttempt) => void;
}

/** The others are about queries, or about a Content-Type of which a definition tells nothing. */
export const playable = [
  ...(['success', 'failed', 'duplicate', 'burst', 'lost-attempts', 'response-lost', 'slow-sender'] as const),
  ...(['reversed', 'flip', 'malformed'] as const),
];

/** As long after the acknowledgement as `flip` follows. */
const reversedAfterMs = 10_000;

/** As long as the sandbox waits. */
const timeoutMs = 10_000;

/** Plays a transfer with the callbacks of another service. Throws UsageError, and INVALID_ARGUMENT. */
export async function playDefined(service: Service, play: Play): Promise<void> {
  const { scenario, endpoint, speed, record } = play;
  // Half a form is a form.
  if (service.traits.isForm && scenario === 'malformed') throw notPlayable(scenario, 'malformed');
  requireSpeed(speed);
  if (service.signer.isMissing(endpoint.callbackHeaders)) throw signatureMissing();
  const isReversed = scenario === 'reversed';
  if (service.gaps.reversed !== undefined && isReversed) throw new UsageError(service.gaps.reversed);
  const { outcome = 'SUCCESS', series = {}, flipAfterMs } = behaviours[isReversed ? 'success' : scenario];
  const transfer = service.announce(outcome, service.toFreshIds(`trigger-${scenario}`, play.externalId));
  const { id: transferId, externalId, body } = transfer;
  const url = toUrl(endpoint, externalId);
  const clock = new SandboxClock(speed);
  const { signal } = new AbortController();
  const headers = addSignature(endpoint.callbackHeaders, (bytes) => service.signer.sign(bytes));
  const send = callbackSender({ clock, timeoutMs, headers, contentType: service.contentType, signal, record });
  const ignore = (): void => undefined;
  const common = { transferId, externalId, url, isCleared: () => false, onState: ignore };
  const first = {
    ...{ ...common, body, behaviour: series },
    onAcknowledged({ plannedAtMs }: PlannedAttempt) {
      const afterMs = isReversed ? reversedAfterMs : flipAfterMs;
      if (afterMs === undefined) return;
      const atMs = plannedAtMs + afterMs;
      const other = service.toBody(isReversed ? 'reversed' : 'success', transfer);
      const behaviour = isReversed ? ({ repeated: true } as const) : {};
      clock.at(atMs, () => send({ ...common, body: other, behaviour, onAcknowledged: ignore }, atMs));
    },
  };
  await clock.track(send(first, clock.nowMs()));
  await clock.idle();
}

/** Judges a success, its reversal and the copy of that, which `check` plays as `reversed`. */
export function judgeReversal(attempts: readonly SandboxAttempt[]): Verdict {
  const refused = attempts.find(({ response }) => !isAcknowledgement(response));
  const passed = refused === undefined && attempts.length > 2;
  return { passed, because: passed ? 'The reversal was acknowledged, and its copy.' : 'An event was refused.' };
}

/** Returns a scenario that a definition can play. Throws UsageError. */
export function toPlayable(value: string): Play['scenario'] {
  const scenario = playable.find((each) => each === value);
  if (scenario === undefined) throw notPlayable(value);
  return scenario;
}

function notPlayable(value: string, without?: 'malformed'): UsageError {
  const names = playable.filter((each) => each !== without).join(', ');
  return new UsageError(`Expected <scenario> with --service to be one of ${names}, got ${describeGiven(value)}.`);
}

/** Returns the error for a callback that would come without its signature. */
export function signatureMissing(): UsageError {
  return new UsageError(
    'Expected --header, or a configuration whose callbackHeaders(body) signs: --service cannot sign this callback.',
  );
}
