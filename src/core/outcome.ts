import type { CallbackShape, Issue } from './callback.js';
import type { TransferCallbackFacts } from './facts.js';

/** How a delivery of a valid callback from a trusted sender can end. */
export type Ending =
  /** The handler has succeeded. `error` is set when recording that failed; it is retried until the receiver closes. */
  | { outcome: 'processed'; overlapped: boolean; error?: unknown }
  /** The handler had already succeeded for the same id and facts. */
  | { outcome: 'duplicate' }
  /** Another delivery holds the claim and did not finish within `inFlightWaitMs`. */
  | { outcome: 'in_progress' }
  /** The id was settled with other facts. `settled` is missing if the fingerprint in the store cannot be parsed. */
  | { outcome: 'conflict'; settled?: TransferCallbackFacts | undefined; received: TransferCallbackFacts | undefined }
  /** `confirm` threw, timed out or did not return the callback. */
  | { outcome: 'unconfirmed'; error: unknown }
  /** The handler threw `RetryLater`. */
  | { outcome: 'retry_later'; retryAfterMs: number; error: unknown }
  /** The handler threw. */
  | { outcome: 'handler_failed'; error: unknown }
  /** The handler did not finish within `handlerTimeoutMs`. It may still succeed; then the next attempt gets a 2xx. */
  | { outcome: 'timed_out'; error: unknown }
  /** No claim could be made and the handler was not run; or a transactional store could not commit. */
  | { outcome: 'store_unavailable'; error: unknown }
  /** `receiver.close()` had begun. */
  | { outcome: 'closing' };

/** The payload is not as documented. */
export interface Invalid {
  outcome: 'invalid';
  issues: readonly Issue[];
  /** Whether a verifier accepted the sender. If so, the callback announces a real payout: investigate it. */
  verified: boolean;
  /** The callback's id and externalId, where they could be read. */
  id?: string;
  externalId?: string;
  event?: undefined;
  status?: undefined;
  /** Set when the receiving app is at fault: its schema threw, or its own middleware consumed the body. */
  error?: unknown;
}

/** A verifier refused the sender, or failed with `error`. `issues` is set when the payload was invalid, too. */
export interface Unauthorized {
  outcome: 'unauthorized';
  issues?: readonly Issue[];
  id?: undefined;
  externalId?: undefined;
  event?: undefined;
  status?: undefined;
  error?: unknown;
}

interface Identified {
  id: string;
  externalId: string;
  event: CallbackShape['event'];
  status: CallbackShape['data']['status'];
  /** The callback's `timestamp`: when the transfer became final. `undefined` if a custom `schema` made no string. */
  timestamp: string | undefined;
  /** How long the delivery waited for another one that held the claim, in milliseconds. 0 if no other one did. */
  waitedMs: number;
}

interface Measured {
  /** The delivery's name: time of arrival, host, process and number. Also the token of its claim in the store. */
  delivery: string;
  /** Where the callback came from: `http`, or what was given to `receive`. */
  source: string;
  /** The time from the call of `receive` to this outcome, in milliseconds. */
  durationMs: number;
  /** Set on the second outcome of a delivery: its handler has finished after the delivery was reported `timed_out`. */
  late?: true;
}

/** Flattens each member of the union `T` to one object type, so that an editor shows its fields. */
type Flat<T> = T extends unknown ? { readonly [K in keyof T]: T[K] } : never;

/**
 * How a delivery ended. `receive` resolves with it; `onOutcome` and the diagnostics channel get it. Frozen. Of each text of
 * the callback it has the first 255 characters, with characters that change how a line is displayed as `\u{202e}`.
 */
export type TransferCallbackOutcome = Flat<Measured & ((Identified & Ending) | Invalid | Unauthorized)>;

/** The names of all outcomes. */
export type OutcomeName = TransferCallbackOutcome['outcome'];
