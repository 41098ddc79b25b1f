import { attemptCallback, attemptsPerCallback, isAcknowledgement, type AttemptAnswer } from './attempt.js';
import type { SandboxClock } from './clock.js';
import type { DeliveryConduct } from './scenarios.js';

/** One delivery attempt and what became of it. */
export interface SandboxAttempt {
  readonly transferId: string;
  readonly externalId: string;
  /** Counted from 1 within one delivery of a callback: 1 to 4, unless the scenario sends more copies. */
  readonly number: number;
  /** When it was sent, in milliseconds of Unix time by the sandbox's clock, like `data.timestamp`. */
  readonly sentAtMs: number;
  /** The body as it was sent. */
  readonly body: string;
  /** `{ error: 'lost' }` for an attempt that the scenario kept from the merchant. */
  readonly answer: AttemptAnswer;
}

export interface Delivery {
  readonly transferId: string;
  readonly externalId: string;
  readonly url: string;
  readonly body: string;
  readonly conduct: DeliveryConduct;
  onAcknowledged(): void;
}

export interface DeliveryTerms {
  readonly clock: SandboxClock;
  /** How long one attempt waits for its answer, in milliseconds of real time. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  record(attempt: SandboxAttempt): void;
}

/** The service's «about 30 seconds» (service §6.3), exactly. */
const firstRetryMs = 30_000;

/** A guess: the backoff is documented to be exponential, but not its factor (service §8). */
const backoffFactor = 2;

/**
 * Delivers a callback as the service does (service §6): the same bytes on every attempt, until one is answered with
 * 2xx or 4 have been made, 0, 30, 90 and 210 s after the first. Resolves when the first attempt has been answered;
 * the others are left to the clock. Never rejects.
 */
export function deliverCallback(delivery: Delivery, terms: DeliveryTerms): Promise<void> {
  const { transferId, externalId, conduct } = delivery;
  const { copies = 1, repeated = false } = conduct;
  return attempt(0, false);

  async function attempt(index: number, acknowledgedBefore: boolean): Promise<void> {
    const sentAtMs = terms.clock.nowMs();
    const sending = Array.from({ length: index === 0 ? copies : 1 }, () => sendOnce(delivery, terms, index));
    const sent = await Promise.all(sending);
    const firstNumber = index === 0 ? 1 : index + copies;
    sent.forEach((each, copy) => {
      terms.record({ transferId, externalId, number: firstNumber + copy, sentAtMs, ...each });
    });
    if (acknowledgedBefore || terms.signal.aborted) return;

    const acknowledged = sent.some(({ answer }) => isAcknowledgement(answer));
    if (acknowledged) delivery.onAcknowledged();
    if (index + 1 === attemptsPerCallback || (acknowledged && !repeated)) return;
    // From when it was sent, not from its answer: a merchant who answers slowly does not move the schedule.
    terms.clock.at(sentAtMs + firstRetryMs * backoffFactor ** index, () => attempt(index + 1, acknowledged));
  }
}

async function sendOnce(
  { url, body, conduct }: Delivery,
  { timeoutMs, signal }: DeliveryTerms,
  index: number,
): Promise<{ body: string; answer: AttemptAnswer }> {
  if (index < (conduct.lost ?? 0)) return { body, answer: { error: 'lost' } };
  const fault = index === 0 ? conduct.firstAttempt : undefined;
  const sent = fault === 'cut short' ? body.slice(0, body.length / 2) : body;
  const answer = await attemptCallback(url, sent, {
    timeoutMs,
    signal,
    pieces: conduct.pieces,
    dropAnswer: fault === 'answer dropped',
    contentType: fault === 'text/plain' ? fault : undefined,
  });
  return { body: sent, answer };
}
