/**
 * A delivery's request to claim a callback.
 *
 * @example
 * const request: ClaimRequest = { token: 'replay-1', fingerprint: '', leaseMs: 15_000, retentionMs: 604_800_000 };
 * const reply = await store.claim('tr_1', request);
 */
export interface ClaimRequest {
  /**
   * Names the delivery, in up to 330 characters of ASCII without a space. Compare all of it: the tokens of two
   * deliveries may differ in the last character only. Two claims of one process with the same token are one claim, sent
   * twice.
   */
  token: string;
  /**
   * What is claimed: by default the record of the transfer with this key, with `reversal` the record of its refund, and
   * with `both` the two in one claim. Join the name to the key, whatever the key is. Only a receiver with `onReversed`
   * passes it, and `both` only to a store with `claimsBoth`. There `reversal` is granted only while no other delivery
   * holds the record of the transfer.
   */
  record?: 'reversal' | 'both' | undefined;
  /** The facts of the callback, remembered with the handled record. They contain `externalId`, whole. */
  fingerprint: string;
  /** How long the claim lasts unless it is renewed, in milliseconds. */
  leaseMs: number;
  /** How long the record lasts after settling, in milliseconds. It may last for `maxHeldMs` longer. */
  retentionMs: number;
  /** How long the caller waits for the reply once the claim has begun, in milliseconds. */
  timeoutMs?: number;
  /** How long the claim of a transactional store may queue for a connection, in milliseconds. */
  queueMs?: number;
  /** How long the handler may keep its claim at most, by renewals, in milliseconds. */
  maxHeldMs?: number;
  /** Stored for people; the package does not read it. The receiver always passes it. */
  event?: string;
  /** Stored for people, as it is in the callback: of any length, with any character, even NUL. */
  externalId?: string;
}

/**
 * The store's reply to a claim:
 * - `claimed`: only the caller may run the handler, while it holds the claim;
 * - `in_progress`: another delivery holds the claim;
 * - `handled`: the handler had succeeded, for a callback with this fingerprint. If both records are claimed, and
 *   both are handled, it is the fingerprint of the refund.
 *
 * @example
 * const isHandled = (reply: ClaimReply): boolean => reply.state === 'handled';
 */
export type ClaimReply<Tx = undefined> =
  { state: 'claimed'; claim: Claim<Tx> } | { state: 'in_progress' } | { state: 'handled'; fingerprint: string };

/**
 * The right to run the handler of one callback. It ends after `leaseMs` unless it is renewed.
 *
 * @example
 * async function record(claim: Claim): Promise<void> {
 *   const { overlapped } = await claim.settle();
 *   if (overlapped) console.error('Another delivery may also have run the handler.');
 * }
 */
export interface Claim<Tx = undefined> {
  /** The handler's `context.tx`, set by a transactional store; `undefined` for the others. */
  readonly tx: Tx;
  /**
   * Resolves when the claim has ended, if the store learns that by itself, as when a connection has broken. The
   * handler's signal then aborts. Must not resolve while the claim is held.
   */
  readonly ended?: Promise<unknown> | undefined;
  /**
   * Restarts the lease. Resolves with `false`, and changes nothing, if it has expired or another delivery holds the
   * claim.
   */
  renew(): Promise<boolean>;
  /**
   * Records that the handler has succeeded. May be called again after a failure. If the claim had already lapsed, or
   * passed to another delivery, the success is recorded anyway and reported as `overlapped`: the handler may have run
   * twice. A transactional store rejects instead: its writes were rolled back with the claim.
   */
  settle(): Promise<{ overlapped: boolean }>;
  /** Frees the callback for the next delivery. Changes nothing when the claim is no longer this delivery's. */
  release(): Promise<void>;
}

/**
 * A store's record of a callback, for people. Omits unknown fields. It may be out of date when it arrives.
 *
 * @example
 * const record: StoreRecord = await receiver.inspect('tr_1');
 * if (record.state === 'claimed') console.log(record.by, record.leaseLeftMs);
 */
export type StoreRecord =
  /** There is no record: the callback was never claimed, its claim or record has ended, or the store has lost it. */
  | { state: 'free' }
  /** A delivery holds the claim. */
  | {
      state: 'claimed';
      /** The name of the delivery that holds it: the token of its claim. */
      delivery?: string;
      /** The holder, as the store knows it: host and process, or the database's client. */
      by?: string;
      since?: Date;
      leaseLeftMs?: number;
    }
  /** The handler has succeeded, for a callback with this fingerprint. */
  | { state: 'handled'; fingerprint: string; delivery?: string; handledAt?: Date; expiresAt?: Date };

/**
 * Keeps the claims. `storeContract` of `transfer-callbacks/testing` tests an implementation. In short:
 * - of all concurrent claims on a key exactly one is `claimed`, and a repeated claim with its token is `claimed` too;
 * - success is permanent: a handled record stays until its retention ends, unless `forget` removes it;
 * - late holders are harmless: `release` and `renew` change nothing if the lease has expired or the claim has passed to
 *   another delivery;
 * - a released or lapsed claim is free;
 * - the record of a refund is another one than the record of its transfer.
 *
 * A call that fails must reject. The receiver sets its own deadline for each call.
 *
 * @example
 * const store: CallbackStore = { claim: () => Promise.reject(new Error('down')) }; // in a test: `store_unavailable`
 */
export interface CallbackStore<Tx = undefined> {
  /**
   * Whether `settle` also commits the handler's own writes. If it fails they are rolled back, unless only its reply was
   * lost. A claim may then queue for a connection: the receiver waits for `queueMs` plus `timeoutMs`, and the store
   * must stop queueing after `queueMs`.
   */
  readonly transactional?: boolean;
  /**
   * Whether one claim may have both records. Without it the receiver makes two claims. A transactional store needs it
   * for `onReversed`, because two claims would need two connections of one pool.
   */
  readonly claimsBoth?: boolean;
  /** Whether the claims exist in this process only. The receiver logs a warning about this in production. */
  readonly processLocal?: boolean;
  claim(key: string, request: ClaimRequest): Promise<ClaimReply<Tx>>;
  /** Reads the record without changing it or any claim. Without this method `receiver.inspect` rejects. */
  read?(key: string, record?: 'reversal'): Promise<StoreRecord>;
  /**
   * Forgets a handled record if its fingerprint is `fingerprint`. Resolves with whether it did. Never forgets a claim.
   * Without this method `receiver.forget` rejects.
   */
  forget?(key: string, fingerprint: string, record?: 'reversal'): Promise<boolean>;
  /**
   * Tries what `receiver.check()` cannot try by the other methods, with a key that nothing else uses, and leaves
   * nothing behind. Rejects with what is missing. Resolves with a sentence for the log for each risky setting.
   */
  check?(key: string, request: ClaimRequest): Promise<readonly string[]>;
}
