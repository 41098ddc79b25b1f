import { hasMethods } from '../lib/checks.js';
import { callWithin, graceMs } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';
import type { CallbackStore, Claim, ClaimRequest, Lease } from './store.js';

/** A store with a deadline for every call. Releases a claim that is granted after its deadline. */
export class TimedStore<Tx> {
  readonly transactional: boolean;
  readonly #store: CallbackStore<Tx>;
  readonly #callMs: number;
  readonly #claimMs: number;

  constructor(
    store: CallbackStore<Tx>,
    { storeTimeoutMs, inFlightWaitMs }: { storeTimeoutMs: number; inFlightWaitMs: number },
  ) {
    this.transactional = store.transactional === true;
    this.#store = store;
    // A claim may first queue for a connection, for at least `storeTimeoutMs`.
    const queueMs = this.transactional ? Math.max(inFlightWaitMs, storeTimeoutMs) : 0;
    this.#callMs = storeTimeoutMs;
    this.#claimMs = queueMs + storeTimeoutMs;
  }

  /** Rejects with what the store rejects with, or with STORE_TIMEOUT. */
  claim(key: string, request: ClaimRequest): Promise<Claim<Tx>> {
    return callStore(
      this.#claimMs,
      () => this.#store.claim(key, request),
      (claim) => {
        void releaseLateClaim(claim);
      },
    );
  }

  /** Renews the lease. Resolves with whether it is still this delivery's. */
  renew(lease: Lease<Tx>): Promise<boolean> {
    return callStore(this.#callMs, () => lease.renew());
  }

  settle(lease: Lease<Tx>): Promise<{ overlapped: boolean }> {
    return callStore(this.#callMs, () => lease.settle());
  }

  release(lease: Lease<Tx>): Promise<void> {
    return callStore(this.#callMs, () => lease.release());
  }
}

/** Settles as `call` does, or rejects with STORE_TIMEOUT. `onLateValue` gets what the call resolves with after that. */
export function callStore<T>(ms: number, call: () => Promise<T>, onLateValue?: (value: T) => void): Promise<T> {
  return callWithin(ms, call, storeTimeout, graceMs, onLateValue);
}

function storeTimeout(ms: number): TransferCallbackError {
  return new TransferCallbackError('STORE_TIMEOUT', `The store did not reply within ${ms} ms.`);
}

/**
 * Returns `claim` if it is one, and throws STORE_REPLY_UNEXPECTED otherwise. A JavaScript store may resolve with any
 * value, and only a claim may run a handler.
 */
export function requireClaim<Tx>(claim: Claim<Tx>): Claim<Tx> {
  const given = claim as unknown as Record<string, unknown> | null | undefined;
  if (given?.state === 'in_progress') return claim;
  if (given?.state === 'settled' && typeof given.fingerprint === 'string') return claim;
  if (given?.state === 'claimed' && hasMethods(given.lease, 'renew', 'settle', 'release')) return claim;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'Expected `store.claim` to resolve with a claim: `claimed` with its lease, `in_progress`, or `settled` with its fingerprint.',
  );
}

/** Frees the callback, so that a claim that nobody waits for does not block the next attempt. Never rejects. */
async function releaseLateClaim(claim: Claim<unknown>): Promise<void> {
  try {
    if (claim.state === 'claimed') await claim.lease.release();
  } catch {
    // If this fails, the lease expires.
  }
}
