import { hostname } from 'node:os';
import { toPrintable } from '../lib/text.js';
import { toTransferKey, type EventShape, type FinalStatus } from './callback.js';
import { haveSameFacts, haveSameMoney, isRefund, parseFingerprint, showFingerprint, toFingerprint } from './facts.js';
import type { Ending, TransferCallbackOutcome } from './outcomes.js';
import type { CallbackFields } from './payout-service.js';

/** The source of what reconciliation reads from the service. */
export const reconciliation = 'reconciliation';

/**
 * Keeps the process of a host until the promise resolves, as hosts call it that end or freeze a process after the
 * response.
 */
export type WaitUntil = (work: Promise<void>) => unknown;

export interface Arrival {
  /** The name of the delivery: see `createDeliveryNamer`. */
  readonly name: string;
  readonly source: string;
  readonly startedAt: number;
  readonly waitUntil?: WaitUntil | undefined;
}

/**
 * A delivery of a valid callback. The facts are read before `confirm` and the handler run, because both may change the
 * callback in place.
 */
export class Delivery {
  readonly name: string;
  readonly source: string;
  readonly startedAt: number;
  readonly waitUntil: WaitUntil | undefined;
  /** `confirm` may replace it by one with the same facts, or by the reversal of its transfer. */
  callback!: EventShape;
  /** Names the callback in log lines and outcomes. */
  readonly id: string;
  /** Names it in the store. */
  readonly key: string;
  readonly externalId: string | undefined;
  event!: EventShape['event'];
  readonly type: string | undefined;
  status: FinalStatus | undefined;
  timestamp: string | undefined;
  fingerprint!: string;
  #waitsSince: number | undefined;
  #waitEndedAt: number | undefined;

  constructor({ name, source, startedAt, waitUntil }: Arrival, callback: EventShape, fields: CallbackFields) {
    const { event, type, id, externalId } = fields;
    this.name = name;
    this.source = source;
    this.startedAt = startedAt;
    this.waitUntil = waitUntil;
    this.id = id;
    this.key = event === 'other' ? id : toTransferKey(id);
    this.externalId = externalId;
    this.type = type;
    this.take(callback, fields);
  }

  /** Takes the callback, at first as it was sent, and later the failure or the reversal that `confirm` has read. */
  take(callback: EventShape, fields: CallbackFields): void {
    this.callback = callback;
    this.event = fields.event;
    this.status = fields.event === 'other' ? undefined : (fields.status as FinalStatus);
    this.timestamp = fields.timestamp;
    this.fingerprint = toFingerprint(fields);
  }

  /** Notes that the delivery waits for another one that holds the claim. Only the first call counts. */
  beginWait(): void {
    this.#waitsSince ??= performance.now();
  }

  /** Notes that the wait is over, if there was one, because the delivery has the claim. */
  endWait(): void {
    this.#waitEndedAt = performance.now();
  }

  compareWith(recorded: string): Ending {
    if (haveSameFacts(recorded, this.fingerprint)) return { outcome: 'duplicate' };
    const [before, now] = [parseFingerprint(recorded), parseFingerprint(this.fingerprint)];
    if (before !== undefined && now !== undefined && haveSameMoney(before, now)) {
      // A copy may lack a fact, or have one more. A service may turn off a webhook that responds with 4xx.
      if (before.status === now.status && isRefund(now)) return { outcome: 'duplicate' };
      const isOver = before.status === 'REVERSED' || (before.status === 'FAILED' && now.status === 'REVERSED');
      if (isOver) return { outcome: 'duplicate', recorded: showFingerprint(recorded) };
    }
    return { outcome: 'conflict', recorded: showFingerprint(recorded), received: showFingerprint(this.fingerprint) };
  }

  /** Returns the outcome. Its duration ends with this call. */
  toOutcome(ending: Ending): TransferCallbackOutcome {
    const now = performance.now();
    // Spread `ending` last: at the beginning of the literal it cost 4 µs instead of 0.1 µs.
    const outcome = {
      delivery: this.name,
      id: this.id,
      externalId: this.externalId && toPrintable(this.externalId),
      event: this.event,
      type: this.type,
      status: this.status,
      timestamp: this.timestamp && toPrintable(this.timestamp),
      source: this.source,
      durationMs: now - this.startedAt,
      waitedMs: this.#waitsSince === undefined ? 0 : (this.#waitEndedAt ?? now) - this.#waitsSince,
      ...ending,
    };
    return outcome as TransferCallbackOutcome;
  }
}

/**
 * Returns a function that names deliveries: time, host, process and number, such as
 * `2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2h1-17`. The name is also the token of the delivery's claim, so that
 * people find it in the store. It contains no space, because the Redis store separates its fields by spaces.
 */
export function createDeliveryNamer(hostName = hostname()): () => string {
  const host = hostName.replace(/[^\w.-]/g, '_');
  // Processes in two containers may have the same host name and pid.
  const random = crypto.getRandomValues(new Uint32Array(2)).reduce((text, part) => text + part.toString(36), '');
  const origin = `/${host}/${process.pid}/${random}-`;
  let count = 0;
  let atMs = NaN;
  let prefix = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) {
      atMs = nowMs;
      prefix = new Date(nowMs).toISOString() + origin;
    }
    count += 1;
    return prefix + String(count);
  };
}

/** Returns the name of the delivery that made the claim. A second claim of `…-17` has the token `…-17.2`. */
export function toDeliveryName(token: string): string {
  return token.replace(/(-\d+)\.\d+$/, '$1');
}

/** Returns who holds a claim and since when, for people. Returns nothing for a token of another form. */
export function describeHolder(token: string): { by?: string; since?: Date } {
  const [, time, host, pid] = /^([^/]+)\/([^/]+)\/(\d+)\/[^/]+$/.exec(token) ?? [];
  const since = new Date(time ?? NaN);
  return Number.isNaN(since.getTime()) ? {} : { by: `${host}, process ${pid}`, since };
}
