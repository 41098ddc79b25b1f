import type { Issue } from '../lib/standard-schema.js';
import type { CallbackShape, EventShape, FinalStatus } from './callback.js';
import type { CallbackFields } from './fields.js';
import type { Queried } from './input.js';

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

/** Returns the ids that are known. */
export function toIds(id: string | undefined, externalId: string | undefined): Ids {
  return { ...(id !== undefined && { id }), ...(externalId !== undefined && { externalId }) };
}

/** The meaning of a payload of a service. `state` is the service's own word. */
export type Reading<E extends EventShape = EventShape> =
  | {
      readonly kind: 'callback';
      readonly state: string;
      readonly callback: E;
      readonly fields: CallbackFields;
      /** Whether a `timestamp` was left out, because it is no time. */
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

/**
 * A payout service, as `defineService` makes it: how its callbacks are read, who may send them, and how it is asked.
 * `E` is the type of its callbacks.
 *
 * @example
 * const canBeAsked = ({ queryCallback }: PayoutService): boolean => queryCallback !== undefined;
 */
export interface PayoutService<E extends EventShape = EventShape> {
  /** Reads a callback. Never throws. */
  readonly readCallback: (payload: unknown) => Reading<E>;
  /**
   * The meanings of its states. `undefined` for the documented service, whose schema may make any event of `onOther`.
   */
  readonly meanings?: ReadonlySet<StateMeaning> | undefined;
  /** Decides whether a sender is trusted: what the router takes as `verify`. */
  readonly verify?: unknown;
  /**
   * Asks the service for a transfer, and resolves with its callback. Rejects with a `TransferClientError`. `undefined`
   * for a service that cannot be asked, and for the documented one, which `transferClient` asks.
   */
  readonly queryCallback?: QueryCallback | undefined;
  /** Asks the service for the transfer of a callback: the `confirm: true` of the receiver. */
  readonly confirm?: ConfirmByQuery | undefined;
}

/** Resolves with the transfer that was queried, or with the callback if reconciliation has just read it. */
export type ConfirmByQuery = <C extends CallbackShape>(
  callback: C,
  context: { readonly signal: AbortSignal; readonly source?: string | undefined },
) => Promise<C | Queried>;

/** `id` is the service's id, or your own if the service takes it. */
export type QueryCallback = (id: string, options: { readonly signal: AbortSignal }) => Promise<unknown>;
