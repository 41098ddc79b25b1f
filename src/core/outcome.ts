import type { CallbackShape } from './callback.js';

/** What is wrong with a callback: where, and why. Never a value of it. */
export interface Issue {
  path: readonly PropertyKey[];
  message: string;
}

/** How one delivery ended, as far as the pipeline itself can say. */
export type Ending =
  /** The handler has succeeded, now. `error` is set when recording that failed and is being retried. */
  | { outcome: 'processed'; overlapped: boolean; error?: unknown }
  /** The handler had succeeded before, for the same facts. */
  | { outcome: 'duplicate' }
  /** Another delivery holds the claim and did not finish within `inFlightWaitMs`. */
  | { outcome: 'in_progress' }
  /** The id had been settled with other facts: `settled` shows them, as [status, amount, currency, externalId]. */
  | { outcome: 'conflict'; settled: string }
  /** `confirm` could not establish the callback. */
  | { outcome: 'unconfirmed'; error: unknown }
  /** The handler threw `RetryLater`. */
  | { outcome: 'retry_later'; retryAfterMs: number; error: unknown }
  /** The handler threw. */
  | { outcome: 'handler_failed'; error: unknown }
  /** The handler did not settle within `handlerTimeoutMs`. It may still succeed; then the next attempt gets a 2xx. */
  | { outcome: 'timed_out'; error: unknown }
  /** No claim could be made and the handler was not run; or a transactional store could not commit. */
  | { outcome: 'store_unavailable'; error: unknown }
  /** `receiver.close()` had begun. */
  | { outcome: 'closing' };

/** The ending of a delivery that was refused before its content could be believed. */
export type Refusal =
  | Invalid
  /** A verifier said no, or threw `error`. `issues` is set when the payload was invalid, too. */
  | { outcome: 'unauthorized'; issues?: readonly Issue[]; error?: unknown };

/** Not the documented payload. `error` is set when the schema threw. */
export interface Invalid {
  outcome: 'invalid';
  issues: readonly Issue[];
  error?: unknown;
}

interface Measured {
  /** Who brought the callback: `http` at the edge, else what was given to `receive`. */
  source: string;
  /** From the call of `receive` to this outcome, in milliseconds. */
  durationMs: number;
}

interface Identified {
  id: string;
  event: CallbackShape['event'];
  status: CallbackShape['data']['status'];
}

type Unidentified = { [name in keyof Identified]?: undefined };

/** How a delivery ended, and of which callback where that can be believed. */
export type Ended = (Identified & Ending) | (Unidentified & Refusal);

/** How one delivery ended: what `receive` answers, and what `onOutcome` and the diagnostics channel are told. */
export type TransferCallbackOutcome = Measured & Ended;

/** The names of all outcomes. */
export type OutcomeName = TransferCallbackOutcome['outcome'];
