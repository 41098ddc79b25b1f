import { AsyncResource } from 'node:async_hooks';
import { TransferCallbackError } from './errors.js';
import type { CallbackStore, Claim, ClaimRequest, Lease } from './store.js';
import { settleWithin, TimerQueue } from './timers.js';

/** A store whose every call has a deadline. A claim that is granted after its deadline is released. */
export class TimedStore<Tx> {
  readonly transactional: boolean;
  readonly #store: CallbackStore<Tx>;
  readonly #calls: TimerQueue;
  readonly #claims: TimerQueue;
  readonly #lateError: () => Error;
  readonly #claimTimeoutMs: number;

  constructor(
    store: CallbackStore<Tx>,
    { storeTimeoutMs, inFlightWaitMs }: { storeTimeoutMs: number; inFlightWaitMs: number },
  ) {
    this.transactional = store.transactional === true;
    this.#store = store;
    // A claim may queue for a connection first, for at least as long as a call may take.
    const queueMs = store.queues === true ? Math.max(inFlightWaitMs, storeTimeoutMs) : 0;
    this.#claimTimeoutMs = queueMs + storeTimeoutMs;
    this.#calls = new TimerQueue(storeTimeoutMs);
    this.#claims = new TimerQueue(this.#claimTimeoutMs);
    this.#lateError = () => storeTimeout(storeTimeoutMs);
  }

  /** Rejects with what the store rejects with, or with STORE_TIMEOUT. */
  claim(key: string, request: ClaimRequest): Promise<Claim<Tx>> {
    let reply: Promise<Claim<Tx>>;
    // The deadline's timer is shared: what it starts must run in the async context of this delivery.
    const context = new AsyncResource('transfer-callbacks:claim', { requireManualDestroy: true });
    return settleWithin(
      this.#claims,
      () => (reply = this.#store.claim(key, request)),
      () => {
        // The claim may still be granted. Release it then, so that it does not block the next attempt; failing that, it
        // expires.
        void context.runInAsyncScope(releaseWhenGranted, undefined, reply);
        return storeTimeout(this.#claimTimeoutMs);
      },
    );
  }

  /** Resolves with whether the lease is still this delivery's. */
  renew(lease: Lease<Tx>): Promise<boolean> {
    return settleWithin(this.#calls, () => lease.renew(), this.#lateError);
  }

  settle(lease: Lease<Tx>): Promise<{ overlapped: boolean }> {
    return settleWithin(this.#calls, () => lease.settle(), this.#lateError);
  }

  release(lease: Lease<Tx>): Promise<void> {
    return settleWithin(this.#calls, () => lease.release(), this.#lateError);
  }
}

export function storeTimeout(ms: number): TransferCallbackError {
  return new TransferCallbackError('STORE_TIMEOUT', `The store did not reply within ${ms} ms.`);
}

/**
 * Returns `claim` if it is one, and throws STORE_REPLY_UNEXPECTED otherwise. A store from JavaScript may resolve with
 * anything: whatever is no claim must not run a handler.
 */
export function requireClaim<Tx>(claim: Claim<Tx>): Claim<Tx> {
  const given = claim as unknown as Record<string, unknown> | null | undefined;
  if (given?.state === 'in_progress') return claim;
  if (given?.state === 'settled' && typeof given.fingerprint === 'string') return claim;
  if (given?.state === 'claimed' && isLease(given.lease)) return claim;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'Expected `store.claim` to resolve with a claim: `claimed` with its lease, `in_progress`, or `settled` with its fingerprint.',
  );
}

function isLease(lease: unknown): boolean {
  if (typeof lease !== 'object' || lease === null) return false;
  const methods = lease as Record<string, unknown>;
  return ['renew', 'settle', 'release'].every((name) => typeof methods[name] === 'function');
}

async function releaseWhenGranted(reply: Promise<Claim<unknown>>): Promise<void> {
  try {
    const claim = await reply;
    if (claim.state === 'claimed') await claim.lease.release();
  } catch {
    // It was refused, or releasing it failed: then it expires.
  }
}
