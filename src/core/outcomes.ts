import type { Issue } from '../lib/standard-schema.js';
import type { CallbackShape, EventShape } from './callback.js';
import type { TransferCallbackFacts } from './facts.js';

/** What the log and the sender learn of an outcome. */
export type OutcomeRow = {
  /** `info`: acknowledged. `warn`: a retry of the service resolves it. `error`: a person must investigate. */
  readonly level: 'info' | 'warn' | 'error';
  /** The message of the log line. */
  readonly line: string;
} & (
  | { readonly status: 200 }
  | {
      readonly status: 400 | 401 | 409 | 422 | 500 | 503;
      /** The message of the response. It must never contain an error's text or a value of the callback. */
      readonly message: string;
      /** Whether the response has Retry-After. */
      readonly retryAfter?: true;
    }
);

/**
 * All outcomes. Each has a row here and a case in `TransferCallbackOutcome`, or the package does not compile. The last
 * sentence of a comment is what follows. `npx vitest run test/docs/outcomes.test.ts -u` writes the comments into the
 * documents.
 */
export const outcomes: Readonly<Record<OutcomeName, OutcomeRow>> = {
  /** Your handler has succeeded, now. The payout service is done. */
  processed: {
    status: 200,
    level: 'info',
    line: 'A callback was handled.',
  },
  /**
   * Your handler had succeeded before for the same status, amount, currency and externalId: the *facts*. The payout
   * service is done.
   */
  duplicate: {
    status: 200,
    level: 'info',
    line: 'A callback had been handled before.',
  },
  /**
   * By your definition it is none of your transfers, or is not final: no handler runs, and nothing is recorded. The
   * payout service is done.
   */
  ignored: {
    status: 200,
    level: 'info',
    line: 'A callback needs no handler, by the definition of the service.',
  },
  /** Another delivery still holds the claim after `inFlightWaitMs`. The payout service retries. */
  in_progress: {
    status: 409,
    retryAfter: true,
    message: 'Another delivery of this callback is being handled.',
    level: 'warn',
    line: 'Another delivery still holds the claim of this callback; the service retries.',
  },
  /** Your handler had succeeded for this id with other facts. The payout service retries in vain: investigate. */
  conflict: {
    status: 422,
    message: 'A callback with this id was handled with other facts.',
    level: 'error',
    line: 'A callback contradicts the one that was handled under its id.',
  },
  /**
   * Not the expected callback. The status is 405, 413 or 415 for a wrong method, length or type, and 500 if your app
   * had read the body, if its `payload` threw, or if its `read` returned a promise. The payout
   * service retries in vain: investigate.
   */
  invalid: {
    status: 400,
    message: 'This is not the expected callback.',
    level: 'warn',
    line: 'A callback is not as expected.',
  },
  /**
   * A verifier did not accept the sender within `verifyTimeoutMs`. The payout service retries, if it was the sender.
   */
  unauthorized: {
    status: 401,
    message: 'The sender is not verified.',
    level: 'warn',
    line: 'A callback came from a sender that was not verified.',
  },
  /** `confirm` did not confirm it within `confirmTimeoutMs`. The payout service retries. */
  unconfirmed: {
    status: 503,
    retryAfter: true,
    message: 'The callback could not be confirmed.',
    level: 'error',
    line: 'A callback could not be confirmed.',
  },
  /** Your handler threw `RetryLater`. The payout service retries. */
  retry_later: {
    status: 503,
    retryAfter: true,
    message: 'The callback cannot be handled now.',
    level: 'warn',
    line: 'The handler of a callback asked to be called again later.',
  },
  /** Your handler threw. The payout service retries. */
  handler_failed: {
    status: 500,
    message: 'The callback could not be handled.',
    level: 'error',
    line: 'The handler of a callback failed.',
  },
  /** Your handler did not finish within `handlerTimeoutMs`, and may still succeed. The payout service retries. */
  timed_out: {
    status: 503,
    retryAfter: true,
    message: 'The callback was not handled in time.',
    level: 'error',
    line: 'The handler of a callback did not finish in time.',
  },
  /**
   * The store failed before your handler was run, or a transactional store did not commit. The payout service retries.
   */
  store_unavailable: {
    status: 503,
    retryAfter: true,
    message: 'The callback could not be recorded.',
    level: 'error',
    line: 'A callback was not acknowledged because the store failed.',
  },
  /** `receiver.close()` has begun. The payout service retries. */
  closing: {
    status: 503,
    retryAfter: true,
    message: 'The server is closing.',
    level: 'warn',
    line: 'A callback came while the receiver was closing.',
  },
};

/**
 * The rows that replace the row of `processed`, `duplicate`, `ignored`, `invalid` or `unauthorized`. Each comment has
 * the case.
 */
export const special = {
  /** `processed` after its claim had passed to another delivery */
  overlapped: {
    ...outcomes.processed,
    level: 'error',
    line: 'A callback was handled, but its claim had passed to another delivery: it may have been handled twice.',
  },
  /** `processed` whose success could not be recorded immediately */
  unrecorded: {
    ...outcomes.processed,
    level: 'error',
    line: 'A callback was handled, but not recorded: do not restart this process before the store is back.',
  },
  /** `processed` after `timed_out` */
  late: {
    ...outcomes.processed,
    level: 'warn',
    line: 'A callback was handled late; the next attempt gets a 200.',
  },
  /** `duplicate` of another final status, which a reversal came before or after */
  superseded: {
    ...outcomes.duplicate,
    line: 'A callback came after another final status of its transfer had been handled; no handler runs for it.',
  },
  /** `conflict` with the same status and another externalId */
  otherTransfer: {
    ...outcomes.conflict,
    line: 'Another transfer has this id: do two services share this store? Give each a `prefix` or a `table`.',
  },
  /** `ignored`, for the first event of its name */
  firstIgnored: {
    ...outcomes.ignored,
    level: 'warn',
    line: 'A callback was ignored, by the definition of the service; the next of this name are logged as info.',
  },
  /** `invalid` through your own app */
  unreadable: {
    status: 500,
    message: 'The callback could not be read.',
    level: 'error',
    line: 'A callback could not be read; this app is at fault.',
  },
  /** `invalid` of a verified sender */
  undocumented: {
    ...outcomes.invalid,
    level: 'error',
    line: 'A callback of a verified sender is not as expected; look into the transfer.',
  },
  /** `unauthorized` because `receive` was called with wrong options */
  miscalled: {
    ...outcomes.unauthorized,
    level: 'error',
    line: 'A callback was refused: `receive` was called with wrong options.',
  },
} as const satisfies Record<string, OutcomeRow>;

/** Returns the row of an outcome. */
export function findRow(outcome: TransferCallbackOutcome): OutcomeRow {
  if (outcome.outcome === 'processed') {
    if (outcome.overlapped) return special.overlapped;
    if (outcome.error !== undefined) return special.unrecorded;
    if (outcome.late) return special.late;
  }
  if (outcome.outcome === 'duplicate' && outcome.recorded !== undefined) return special.superseded;
  if (outcome.outcome === 'conflict') {
    const { recorded, received } = outcome;
    // One service gives an id to one transfer.
    const isOther = recorded?.status === received?.status && recorded?.externalId !== received?.externalId;
    if (recorded !== undefined && isOther) return special.otherTransfer;
  }
  if (outcome.outcome === 'ignored' && outcome.count === 1) return special.firstIgnored;
  if (outcome.outcome === 'invalid') {
    if (outcome.error !== undefined) return special.unreadable;
    if (outcome.verified) return special.undocumented;
  }
  return outcomes[outcome.outcome];
}

/** How a delivery of a valid callback from a trusted sender can end. */
export type Ending =
  | {
      outcome: 'processed';
      /** Whether another delivery may have run the handler too. */
      overlapped: boolean;
      /** Why the success is not recorded yet. Recording it is retried until the receiver closes. */
      error?: unknown;
    }
  | {
      outcome: 'duplicate';
      /** The facts that were handled, if they are of another final status: the transfer was reversed. */
      recorded?: TransferCallbackFacts | undefined;
    }
  | { outcome: 'in_progress' }
  | {
      outcome: 'conflict';
      /** The facts that were handled. Missing if the fingerprint in the store cannot be parsed. */
      recorded?: TransferCallbackFacts | undefined;
      /** The facts of this callback. */
      received: TransferCallbackFacts | undefined;
    }
  | { outcome: 'unconfirmed'; error: unknown }
  | {
      outcome: 'retry_later';
      /** The value of Retry-After, in milliseconds. */
      retryAfterMs: number;
      error: unknown;
    }
  | { outcome: 'handler_failed'; error: unknown }
  | { outcome: 'timed_out'; error: unknown }
  | { outcome: 'store_unavailable'; error: unknown }
  | { outcome: 'closing' };

/** The case of a payload that is not as expected. */
export interface Invalid {
  outcome: 'invalid';
  /** What is wrong, and where. */
  issues: readonly Issue[];
  /** Whether a verifier accepted the sender. If so, the callback is about a real payout: investigate it. */
  verified: boolean;
  /** The callback's id, if it could be read. */
  id?: string;
  /** Your own id of the transfer, if it could be read. */
  externalId?: string;
  event?: undefined;
  type?: undefined;
  status?: undefined;
  /**
   * Set if your own app is at fault: its `payload` threw, its `read` returned a promise, or its middleware
   * consumed the body.
   */
  error?: unknown;
}

/** The case of a callback that the definition of a service ignores, or that tells of a transfer that is not final. */
export interface Ignored {
  outcome: 'ignored';
  /** The name that `read` ignores, or the state that is `PENDING`. */
  type: string;
  /** How many of this name this receiver has ignored, since 1 000 other names. `undefined` for a state. */
  count?: number | undefined;
  /** The ids of a transfer that is not final, if `read` finds them. */
  id?: string;
  externalId?: string;
  event?: undefined;
  status?: undefined;
}

/** The case of a sender that a verifier refused. */
export interface Unauthorized {
  outcome: 'unauthorized';
  /**
   * The verifier that refused, such as `verifier 2 of 2, urlToken`, and of a signature the reason. Not set by the
   * `verify` of `receive`.
   */
  refusedBy?: string;
  /** Set if the payload was also invalid, or was not read. */
  issues?: readonly Issue[];
  id?: undefined;
  externalId?: undefined;
  event?: undefined;
  type?: undefined;
  status?: undefined;
  /** Set if a verifier failed. */
  error?: unknown;
}

interface OfTransfer<C extends CallbackShape> {
  id: string;
  externalId: string;
  event: C['event'];
  type?: undefined;
  status: C['data']['status'];
}

type OfEvent<E extends EventShape> = E extends CallbackShape ? OfTransfer<E> : OfOther;

/** The fields of an event of `onOther`. */
interface OfOther {
  /** `other:<type>:<id>`: under it the event is kept, inspected and forgotten. */
  id: string;
  /** Missing if the service sends none. */
  externalId: string | undefined;
  event: 'other';
  /** What the service calls it. */
  type: string;
  status?: undefined;
}

interface Timed {
  /** The callback's `timestamp`: when the transfer became final. `undefined` if there is none. */
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
 * How a delivery ended. `receive` resolves with it; `onOutcome` and the diagnostics channel get it. Frozen. It
 * has the first 255 characters of each string of the callback, with characters that change how a line is displayed as
 * `\u{202e}`. `E` is what handlers get: without an event of `onOther`, `externalId` and `status` of a valid
 * callback are never missing.
 *
 * @example
 * function onOutcome(ended: TransferCallbackOutcome): void {
 *   if (ended.outcome === 'conflict') console.error(ended.id, ended.recorded, ended.received);
 * }
 */
export type TransferCallbackOutcome<E extends EventShape = EventShape> = Flat<
  Measured & ((OfEvent<E> & Timed & Ending) | Ignored | Invalid | Unauthorized)
>;

/** The names of all outcomes. */
export type OutcomeName = TransferCallbackOutcome['outcome'];
