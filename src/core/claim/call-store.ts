import { hasMethods } from '../../lib/checks.js';
import { callWithin, graceMs } from '../../lib/deadline.js';
import { TransferCallbackError } from '../../lib/errors.js';
import type { CallbackStore, Claim, ClaimReply, ClaimRequest } from '../store.js';
import { traceStoreCall, type StoreCall } from '../trace.js';
import type { StoreRules } from './rules.js';

/**
 * Calls the store. Resolves or rejects as `call` does, or rejects with STORE_TIMEOUT after `timeoutMs`. `onLateReply`
 * gets what the call resolves with after that. A call with a name is published.
 */
export function callStore<T>(
  timeoutMs: number,
  call: () => Promise<T>,
  name?: StoreCall,
  onLateReply?: (reply: T) => void,
): Promise<T> {
  const named = name === undefined ? call : () => traceStoreCall(name, call);
  return callWithin(timeoutMs, named, storeTimeout, graceMs, onLateReply);
}

/**
 * Claims a callback. Each method of the claim that it resolves with has a deadline of `timeoutMs` too. A claim that is
 * granted too late is released. Rejects with STORE_TIMEOUT, STORE_REPLY_UNEXPECTED, or as the store does.
 */
export function claimCallback<Tx>(
  store: CallbackStore<Tx>,
  { key, id }: { readonly key: string; readonly id: string },
  request: ClaimRequest,
  timeoutMs: number,
  { undoesWrites }: StoreRules,
): Promise<ClaimReply<Tx>> {
  const { token, queueMs = 0 } = request;
  const claimMs = timeoutMs + (undoesWrites ? queueMs : 0);
  const claim = async (): Promise<ClaimReply<Tx>> => {
    const reply = requireReply(await store.claim(key, request));
    if (reply.state !== 'claimed') return reply;
    return { state: 'claimed', claim: new TimedClaim(reply.claim, id, token, timeoutMs) };
  };
  return callStore(claimMs, claim, { method: 'claim', token, id }, releaseLate);
}

/** A claim whose calls have a deadline. */
class TimedClaim<Tx> implements Claim<Tx> {
  readonly #claim: Claim<Tx>;
  readonly #id: string;
  readonly #token: string;
  readonly #timeoutMs: number;

  constructor(claim: Claim<Tx>, id: string, token: string, timeoutMs: number) {
    this.#claim = claim;
    this.#id = id;
    this.#token = token;
    this.#timeoutMs = timeoutMs;
  }

  /** Another one after each `restart`, as `ended`. */
  get tx(): Tx {
    return this.#claim.tx;
  }

  get ended(): Promise<unknown> | undefined {
    return this.#claim.ended;
  }

  renew(): Promise<boolean> {
    return this.#call('renew', () => this.#claim.renew());
  }

  settle(): Promise<{ overlapped: boolean }> {
    return this.#call('settle', () => this.#claim.settle());
  }

  restart(error: unknown): Promise<boolean> {
    return callStore(this.#timeoutMs, async () => (await this.#claim.restart?.(error)) === true);
  }

  release(): Promise<void> {
    return this.#call('release', () => this.#claim.release());
  }

  #call<T>(method: StoreCall['method'], work: () => Promise<T>): Promise<T> {
    return callStore(this.#timeoutMs, work, { method, token: this.#token, id: this.#id });
  }
}

function storeTimeout(ms: number): TransferCallbackError {
  return new TransferCallbackError('STORE_TIMEOUT', `The store did not reply within ${ms} ms.`);
}

/** Throws STORE_REPLY_UNEXPECTED unless `reply` is one. A JavaScript store may resolve with any value. */
function requireReply<Tx>(reply: ClaimReply<Tx>): ClaimReply<Tx> {
  const given = reply as unknown as Record<string, unknown> | null | undefined;
  if (given?.state === 'in_progress') return reply;
  if (given?.state === 'settled' && typeof given.fingerprint === 'string') return reply;
  if (given?.state === 'claimed' && hasMethods(given.claim, 'renew', 'settle', 'release')) return reply;
  throw new TransferCallbackError(
    'STORE_REPLY_UNEXPECTED',
    'Expected `store.claim` to resolve with `claimed` and its claim, with `in_progress`, or with `settled` and its fingerprint.',
  );
}

/** Frees the callback, so that a claim that nobody waits for does not block the next attempt. */
function releaseLate(reply: ClaimReply<unknown>): void {
  if (reply.state === 'claimed') reply.claim.release().catch(() => undefined); // If this fails, the lease expires.
}
