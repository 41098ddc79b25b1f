import { hasMethods } from './checks.js';
import { TransferCallbackError } from './errors.js';
import type { CallbackStore, Claim, ClaimRequest, Lease } from './store.js';
import { settleWithin, TimerQueue } from './timers.js';

/** A store with a deadline for every call. Releases a claim that is granted after its deadline. */
export class TimedStore<Tx> {
  readonly transactional: boolean;
  readonly #store: CallbackStore<Tx>;
  readonly #calls: TimerQueue;
  readonly #claims: TimerQueue;

  constructor(
    store: CallbackStore<Tx>,
    { storeTimeoutMs, inFlightWaitMs }: { storeTimeoutMs: number; inFlightWaitMs: number },
  ) {
    this.transactional = store.transactional === true;
    this.#store = store;
    // A claim may first queue for a connection, for at least `storeTimeoutMs`.
    const queueMs = store.queues === true ? Math.max(inFlightWaitMs, storeTimeoutMs) : 0;
    this.#calls = new TimerQueue(storeTimeoutMs, { extendsOnce: true });
    this.#claims = new TimerQueue(queueMs + storeTimeoutMs, { extendsOnce: true });
  }

  /** Rejects with what the store rejects with, or with STORE_TIMEOUT. */
  claim(key: string, request: ClaimRequest): Promise<Claim<Tx>> {
    return settleWithin(
      this.#claims,
      () => this.#store.claim(key, request),
      storeTimeout,
      (claim) => {
        void releaseLateClaim(claim);
      },
    );
  }

  /** Renews the lease. Resolves with whether it is still this delivery's. */
  renew(lease: Lease<Tx>): Promise<boolean> {
    return settleWithin(this.#calls, () => lease.renew(), storeTimeout);
  }

  settle(lease: Lease<Tx>): Promise<{ overlapped: boolean }> {
    return settleWithin(this.#calls, () => lease.settle(), storeTimeout);
  }

  release(lease: Lease<Tx>): Promise<void> {
    return settleWithin(this.#calls, () => lease.release(), storeTimeout);
  }
}

export function storeTimeout(ms: number): TransferCallbackError {
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
    // Stryker disable next-line ConditionalExpression: Equal: what has no lease throws, which is caught.
    if (claim.state === 'claimed') await claim.lease.release();
  } catch {
    // If this fails, the lease expires.
  }
}
