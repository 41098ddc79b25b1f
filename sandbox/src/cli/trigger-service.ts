import { addSignature } from '../attempt/signer.js';
import { callbackAnnouncer, type PlannedAttempt, type SandboxAttempt } from '../service/announcements.js';
import { scaledClock } from '../service/clock.js';
import { requireSpeed } from '../service/options.js';
import { behaviours, type TransferScenario } from '../service/scenarios.js';
import { UsageError } from '../../../src/cli/arguments.js';
import { describeGiven } from '../../../src/lib/checks.js';
import type { DefinedService } from './check/defined-service.js';
import { toUrl, type Endpoint } from './endpoint-options.js';

/** A transfer to play. */
export interface Play {
  readonly scenario: TransferScenario;
  readonly endpoint: Endpoint;
  readonly externalId: string | undefined;
  readonly speed: number;
  /** Is called with each attempt when it has ended. */
  readonly record: (attempt: SandboxAttempt) => void;
}

/** The others are about queries, or about a Content-Type of which a definition tells nothing. */
export const playable: readonly TransferScenario[] = [
  ...(['success', 'failed', 'duplicate', 'burst', 'lost-attempts', 'response-lost', 'slow-sender'] as const),
  ...(['flip', 'malformed'] as const),
];

/** As long as the sandbox waits. */
const timeoutMs = 10_000;

/** Plays a transfer with the callbacks of another service. Throws UsageError, and INVALID_ARGUMENT. */
export async function playDefined(service: DefinedService, play: Play): Promise<void> {
  const { scenario, endpoint, speed, record } = play;
  // Half a form is a form.
  if (service.isForm && scenario === 'malformed') throw notPlayable(scenario, 'malformed');
  requireSpeed(speed);
  if (service.isSignatureMissing(endpoint.callbackHeaders)) throw signatureMissing();
  const { outcome = 'SUCCESS', announcement = {}, flipAfterMs } = behaviours[scenario];
  const transfer = service.announce(outcome, service.toFreshIds(`trigger-${scenario}`, play.externalId));
  const { id: transferId, externalId, body } = transfer;
  const url = toUrl(endpoint, externalId);
  const clock = scaledClock(speed);
  const { signal } = new AbortController();
  const headers = addSignature(endpoint.callbackHeaders, (bytes) => service.sign(bytes));
  const announce = callbackAnnouncer({ clock, timeoutMs, headers, contentType: service.contentType, signal, record });
  const ignore = (): void => undefined;
  const common = { transferId, externalId, url, isCleared: () => false, onState: ignore };
  const first = {
    ...{ ...common, body, behaviour: announcement },
    onAcknowledged({ plannedAtMs }: PlannedAttempt) {
      if (flipAfterMs === undefined) return;
      const atMs = plannedAtMs + flipAfterMs;
      const contradiction = { ...common, body: service.contradict(transfer), behaviour: {}, onAcknowledged: ignore };
      clock.at(atMs, () => announce(contradiction, atMs));
    },
  };
  await clock.track(announce(first, clock.nowMs()));
  await clock.idle();
}

/** Returns a scenario that a definition can play. Throws UsageError. */
export function toPlayable(value: string): TransferScenario {
  const scenario = playable.find((each) => each === value);
  if (scenario === undefined) throw notPlayable(value);
  return scenario;
}

function notPlayable(value: string, without?: TransferScenario): UsageError {
  const names = playable.filter((each) => each !== without).join(', ');
  return new UsageError(`Expected <scenario> with --service to be one of ${names}, got ${describeGiven(value)}.`);
}

/** Returns the error for a callback that would come without its signature. */
export function signatureMissing(): UsageError {
  return new UsageError(
    'Expected --header, or a configuration whose callbackHeaders(body) signs: --service cannot sign this callback.',
  );
}
