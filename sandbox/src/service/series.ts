import type { AttemptHeaders } from '../attempt/headers.js';
import { Slots } from '../../../src/lib/slots.js';
import { attemptsPerCallback, firstRetryMs } from '../../../src/core/service.js';
import { attemptCallback, findReason, isAcknowledgement, type AttemptResponse } from '../attempt/attempt.js';
import type { SandboxClock } from './clock.js';
import { explainResponse } from './hints.js';
import type { SeriesBehaviour } from './scenarios.js';

/** One attempt that has ended. */
export interface SandboxAttempt {
  readonly transferId: string;
  readonly externalId: string;
  /** Counted from 1 within one series of attempts to send a callback: 1 to 4, unless the scenario sends more copies. */
  readonly number: number;
  /** When it was planned for, in milliseconds of Unix time by the sandbox's clock, like `data.timestamp`. */
  readonly plannedAtMs: number;
  /** When it was sent, by the same clock: later than planned by what this machine took, times `speed`. */
  readonly sentAtMs: number;
  /** From sending to the end of the response, in milliseconds of real time. */
  readonly durationMs: number;
  /** The body as it was sent. */
  readonly body: string;
  /** The Content-Type as it was sent. */
  readonly contentType: string;
  /** `{ error: 'lost' }` for an attempt that the scenario kept from the merchant. */
  readonly response: AttemptResponse;
  /** The `message` of an error or the `outcome` of a success in the body of the response, if it has one. */
  readonly reason: string | undefined;
  /** What the response means and what to do about it, in a sentence for people. Its words may change. */
  readonly hint: string;
  /** When the next attempt of the same series is planned; `undefined` if this was the last. */
  readonly nextAtMs: number | undefined;
}

/** An attempt that is yet to be made. */
export interface PlannedAttempt {
  readonly number: number;
  readonly plannedAtMs: number;
}

/** What a series of attempts is waiting for: the end of so many attempts, or the time of the next one. */
export type SeriesState = { readonly underWay: number } | { readonly next: PlannedAttempt };

/** The series of attempts that makes one outcome known. */
interface Series {
  readonly transferId: string;
  readonly externalId: string;
  readonly url: string;
  readonly body: string;
  readonly behaviour: SeriesBehaviour;
  /** Whether the transfer was cleared, so that no more attempts follow. */
  isCleared(): boolean;
  /** Called whenever the state changes; with `undefined` when the series of attempts has ended. */
  onState(state: SeriesState | undefined): void;
  /** Called with the first attempt that was acknowledged, after it was recorded. */
  onAcknowledged(attempt: PlannedAttempt): void;
}

export interface SenderParts {
  readonly clock: SandboxClock;
  /** How long one attempt waits for its response, in milliseconds of real time. */
  readonly timeoutMs: number;
  readonly headers: AttemptHeaders;
  /**
   * The content type of the callbacks. A service other than the documented one may have another.
   * @default 'application/json'
   */
  readonly contentType?: string;
  readonly signal: AbortSignal;
  record(attempt: SandboxAttempt): void;
}

type Sent = Pick<SandboxAttempt, 'sentAtMs' | 'durationMs' | 'body' | 'contentType' | 'response'>;

/** A guess: the backoff is documented to be exponential, but not its factor (service §8). */
const backoffFactor = 2;

/** At one origin: with thousands of concurrent sockets most attempts fail. */
const concurrentAttempts = 100;

/** Delivers callbacks as the service does (service §6), each with its own schedule. */
export function callbackSender(parts: SenderParts) {
  // By origin, so that a merchant that hangs delays only its own callbacks.
  const limit = limitPerOrigin(concurrentAttempts);

  /** Makes the attempt at `index` of the schedule, in several copies if the scenario wants that, and plans the next. */
  async function attempt(series: Series, index: number, plannedAtMs: number, before: boolean): Promise<void> {
    const { transferId, externalId, url, behaviour } = series;
    const { copies = 1, repeated = false } = behaviour;
    const sending = Array.from({ length: index === 0 ? copies : 1 }, () =>
      limit(url, () => sendCopy(parts, series, index)),
    );
    series.onState({ underWay: sending.length });
    const sent = await Promise.all(sending);

    const acknowledged = sent.findIndex(({ response }) => isAcknowledgement(response));
    const isLast = before || index + 1 === attemptsPerCallback || (acknowledged !== -1 && !repeated);
    const pauseMs = firstRetryMs * backoffFactor ** index;
    const isEnded = parts.signal.aborted || series.isCleared();
    const nextAtMs = isLast || isEnded ? undefined : plannedAtMs + pauseMs;
    const number = index === 0 ? 1 : index + copies;
    sent.forEach((each, copy) => {
      const reason = findReason(each.response);
      const hint = explainResponse(each.response, reason);
      parts.record({ transferId, externalId, number: number + copy, plannedAtMs, ...each, reason, hint, nextAtMs });
    });
    if (acknowledged !== -1 && !before) series.onAcknowledged({ number: number + acknowledged, plannedAtMs });
    series.onState(
      nextAtMs === undefined ? undefined : { next: { number: number + sent.length, plannedAtMs: nextAtMs } },
    );
    if (nextAtMs === undefined) return;
    // At a high speed an attempt is sent later than planned. Count from then: the pause must not become shorter.
    const lastSentAtMs = Math.max(...sent.map(({ sentAtMs }) => sentAtMs));
    const wasAcknowledged = acknowledged !== -1;
    parts.clock.at(lastSentAtMs + pauseMs, () => attempt(series, index + 1, nextAtMs, wasAcknowledged));
  }

  /**
   * Sends the same bytes on every attempt until the response is a 2xx or 4 attempts have been made: 0, 30, 90 and 210 s
   * after `plannedAtMs`. Resolves when the first attempt has ended; the clock makes the others. Never rejects.
   */
  return function sendSeries(series: Series, plannedAtMs: number): Promise<void> {
    return attempt(series, 0, plannedAtMs, false);
  };
}

/** Sends one copy of the attempt at `index`, with the fault that the scenario wants. */
async function sendCopy(parts: SenderParts, { url, body, behaviour }: Series, index: number): Promise<Sent> {
  const sentAtMs = parts.clock.nowMs();
  const fault = index === 0 ? behaviour.firstAttempt : undefined;
  const contentType = fault === 'text/plain' ? fault : (parts.contentType ?? 'application/json');
  if (index < (behaviour.lost ?? 0)) {
    return { sentAtMs, durationMs: 0, body, contentType, response: { error: 'lost' } };
  }
  const sentBody = fault === 'cut short' ? body.slice(0, body.length / 2) : body;
  const startedAt = performance.now();
  const response = await attemptCallback(url, sentBody, {
    timeoutMs: parts.timeoutMs,
    headers: parts.headers,
    signal: parts.signal,
    pieces: behaviour.pieces,
    dropResponse: fault === 'response dropped',
    contentType,
  });
  return { sentAtMs, durationMs: Math.round(performance.now() - startedAt), body: sentBody, contentType, response };
}

/** Returns a function that runs at most `limit` calls of `work` per origin concurrently. The others wait. */
function limitPerOrigin(limit: number) {
  const origins = new Map<string, Slots>();

  return async function runInTurn<T>(url: string, work: () => Promise<T>): Promise<T> {
    const { origin } = new URL(url);
    const slots = origins.get(origin) ?? new Slots(limit);
    origins.set(origin, slots);
    await slots.take();
    try {
      return await work();
    } finally {
      slots.release();
    }
  };
}
