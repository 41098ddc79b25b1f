import type { Issue } from '../lib/standard-schema.js';
import type { CallbackShape, EventShape, FinalStatus, finalEvents } from './callback.js';
import type { TransferCallbackFacts } from './facts.js';

/**
 * What a state of a payout service means. `PENDING`: not final, acknowledged without a handler. `OTHER`: an event of
 * `onOther`.
 */
export type StateMeaning = FinalStatus | 'PENDING' | 'OTHER';

/** The ids of a payload, as far as they can be read. */
export interface Ids {
  readonly id?: string;
  readonly externalId?: string;
}

export function toIds(id: string | undefined, externalId: string | undefined): Ids {
  return { ...(id !== undefined && { id }), ...(externalId !== undefined && { externalId }) };
}

/** The fields that the receiver reads of a callback. An event of `onOther` may leave out its facts. */
export interface CallbackFields extends TransferCallbackFacts {
  readonly event: EventShape['event'];
  /** Set for an event of `onOther` only. */
  readonly type: string | undefined;
  /** Names it in log lines and outcomes. */
  readonly id: string;
  /** `undefined` if it is not a string. */
  readonly timestamp: string | undefined;
}

/** The meaning of a payload of a service. `state` is the service's own word. */
export type Reading<E extends EventShape = EventShape> =
  | {
      readonly kind: 'callback';
      readonly state: string;
      readonly callback: E;
      readonly fields: CallbackFields;
      /** Whether a `timestamp` was left out, because it is not a time. */
      readonly hasWrongTime?: boolean;
    }
  | { readonly kind: 'pending'; readonly state: string; readonly ids: Ids }
  /** None of the merchant's transfers, by the definition of the service. */
  | { readonly kind: 'ignored'; readonly name: string }
  | {
      readonly kind: 'invalid';
      readonly issues: readonly Issue[];
      readonly ids: Ids;
      /** Set if the app is at fault: its schema threw or is asynchronous, or its `read` returned a promise. */
      readonly error?: unknown;
    };

/** Returns the reading of a callback that is not as documented. */
export function toInvalid<E extends EventShape>(given: unknown, issues: readonly Issue[], error?: unknown): Reading<E> {
  return { kind: 'invalid', issues, ids: readIds(given), error };
}

/** Returns the ids of an invalid callback, if they can be read, so that people can find the payout. */
function readIds(payload: unknown): Ids {
  try {
    const { data } = payload as { data?: unknown };
    const read = (name: string): string | undefined =>
      [data, payload]
        .map((each) => (each as Record<string, unknown> | null | undefined)?.[name])
        .map((value) => (Number.isSafeInteger(value) ? String(value) : value))
        .find((value) => typeof value === 'string');
    return toIds(read('id'), read('externalId'));
  } catch {
    // The payload has no fields, or reading them throws.
    return {};
  }
}

/**
 * A payout service, as `transferService` and `defineService` make it: how its callbacks are read, who may send them,
 * and how it is asked. `E` is the type of its callbacks.
 *
 * @example
 * const canBeAsked = ({ ask }: PayoutService): boolean => ask !== undefined;
 */
export interface PayoutService<E extends EventShape = EventShape> {
  /** Reads a callback. Never throws. */
  readonly readCallback: (payload: unknown) => Reading<E>;
  /** The meanings of its states. */
  readonly meanings: ReadonlySet<StateMeaning>;
  /** Decides whether a sender is trusted, together with the `verify` of the router. */
  readonly verify?: unknown;
  /** Asks the service for a transfer. `undefined` if it cannot be asked. */
  readonly ask?: Ask | undefined;
  /** Makes the `confirm` of a receiver. Those without limits of their own share one queue. */
  readonly makeConfirm?: ((limits?: ConfirmLimits) => ConfirmByQuery) | undefined;
  /** Whether a status that is not final reads as final: for a service that does not document its other words. */
  readonly seemsFinal?: ((status: unknown) => boolean) | undefined;
}

/**
 * A transaction as it was read. Final with `status` SUCCESS or FAILED; other statuses are not documented (service §3).
 *
 * @example
 * const readTransaction = (body: unknown): Transaction | undefined => (body as { result?: Transaction }).result;
 */
export interface Transaction {
  id: string;
  externalId: string;
  status: string;
  [field: string]: unknown;
}

/** The callback that a service sends for a transfer that is final. */
export interface Announcement {
  readonly event: (typeof finalEvents)[FinalStatus];
  /** As the service sends it; not validated. */
  readonly callback: unknown;
}

/** The response of a service to a query, and the callback of the transfer, if it is final. */
export interface Found {
  readonly transaction: Transaction;
  readonly announcement: Announcement | undefined;
}

/**
 * Asks a service for a transfer by its id, or by your own if the service takes that. Rejects with a
 * `TransferClientError`, or with the reason of the signal.
 */
export type Ask = (id: string, signal: AbortSignal) => Promise<Found>;

/** The limits of `confirm`. */
export interface ConfirmLimits {
  /**
   * How many transfers are read at the same time. Four times as many callbacks may wait.
   * @default 8
   */
  concurrency?: number | undefined;
  /**
   * How long a callback waits until its transfer is read, and then for the response, in milliseconds each. The
   * receiver's `confirmTimeoutMs` limits both together.
   * @default 5_000
   */
  timeoutMs?: number | undefined;
}

/** Resolves with what the service sends for the transfer, or with `true` if reconciliation has just read it. */
export type ConfirmByQuery = (
  callback: CallbackShape,
  context: { readonly signal: AbortSignal; readonly source?: string },
) => Promise<unknown>;
