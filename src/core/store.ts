/** What a delivery asks of the store when it claims a callback. */
export interface ClaimRequest {
  /** Names the delivery. Two claims with the same token are one claim, sent twice. */
  token: string;
  /** The facts of the callback, remembered with the settled record. */
  fingerprint: string;
  /** How long the claim lasts unless it is renewed, in milliseconds. */
  leaseMs: number;
  /** How long the settled record lasts, counted from settling, in milliseconds. */
  retentionMs: number;
  /** How long the caller waits for the reply once the claim has begun, in milliseconds. */
  timeoutMs?: number;
  /** How long the claim may queue before it begins, in milliseconds: for a connection, say. See `CallbackStore.queues`. */
  queueMs?: number;
  /** Stored for people; the package does not read it. */
  event?: string;
  /** Stored for people; the package does not read it. */
  externalId?: string;
}

/**
 * The store's reply to a claim:
 * - `claimed`: the caller, and nobody else, may run the handler while it holds the lease;
 * - `in_progress`: another delivery holds the lease;
 * - `settled`: the handler had succeeded, for a callback with this fingerprint.
 */
export type Claim<Tx = undefined> =
  { state: 'claimed'; lease: Lease<Tx> } | { state: 'in_progress' } | { state: 'settled'; fingerprint: string };

/** The right to run the handler of one callback, for `leaseMs` at a time. */
export interface Lease<Tx = undefined> {
  /** What a transactional store hands to the handler as `context.tx`; `undefined` for the others. */
  readonly tx: Tx;
  /** Restarts the lease. Resolves with `false`, and changes nothing, if it has expired or another delivery holds it. */
  renew(): Promise<boolean>;
  /**
   * Records that the handler has succeeded. May be called again after a failure. If the lease had already passed to
   * another delivery, the success is recorded anyway and reported as `overlapped`: the handler may have run twice. A
   * transactional store rejects instead: its writes were rolled back with the lease.
   */
  settle(): Promise<{ overlapped: boolean }>;
  /** Frees the callback for the next delivery. Changes nothing when the lease is no longer this delivery's. */
  release(): Promise<void>;
}

/** What a store knows of a callback, for people. What it does not know is left out. It may be old when it arrives. */
export type StoreRecord =
  /** Nothing is recorded: never claimed, released, lapsed or expired. */
  | { state: 'free' }
  /** A delivery holds the claim. */
  | {
      state: 'claimed';
      /** The name of the delivery that holds it: the token of its claim. */
      delivery?: string;
      /** Who holds it, in the store's own words: host and process, or the database's client. */
      by?: string;
      since?: Date;
      leaseLeftMs?: number;
    }
  /** The handler has succeeded, for a callback with this fingerprint. */
  | { state: 'settled'; fingerprint: string; delivery?: string; settledAt?: Date; expiresAt?: Date };

/**
 * Where claims are kept. What an implementation must do is written down as data in `storeContract` of
 * `transfer-callbacks/testing`; in short:
 * - of all concurrent claims on a key exactly one is `claimed`, and the same token claiming again is `claimed`;
 * - success is absorbing: a settled record leaves only when its retention is over;
 * - failure is fenced: `release` and `renew` by a late holder change nothing;
 * - a released or lapsed claim is free.
 *
 * A call that cannot be carried out must reject. The receiver puts its own deadline on each.
 */
export interface CallbackStore<Tx = undefined> {
  /** `settle` commits the handler's own writes too: when it fails, nothing of the delivery has happened. */
  readonly transactional?: boolean;
  /**
   * A claim may queue for up to `queueMs` before it begins, for a client of a pool, say. The receiver then waits
   * `queueMs` and `timeoutMs` for it. The store must end its own queueing in time.
   */
  readonly queues?: boolean;
  /** The claims are known to this process only. The receiver warns of it in production. */
  readonly processLocal?: boolean;
  claim(key: string, request: ClaimRequest): Promise<Claim<Tx>>;
  /** Looks without touching: no lease is lengthened, nothing is claimed. Without it, `receiver.inspect` is refused. */
  read?(key: string): Promise<StoreRecord>;
  /**
   * Forgets a settled record if its fingerprint is `fingerprint`; resolves with whether it did. Never forgets a claim.
   * Without it, `receiver.forget` is refused.
   */
  forget?(key: string, fingerprint: string): Promise<boolean>;
}

/** A store that can be looked into. */
export type InspectableStore<Tx = undefined> = CallbackStore<Tx> & Required<Pick<CallbackStore<Tx>, 'read' | 'forget'>>;
