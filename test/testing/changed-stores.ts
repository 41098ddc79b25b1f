import type { Redis } from 'ioredis';
import { memoryStore, type CallbackStore, type Claim, type ClaimRequest, type Lease } from 'transfer-callbacks';

/** A store with one fault, and the checks of `storeContract` that must catch it. */
export interface BrokenStore {
  readonly fault: string;
  readonly make: (redis: Redis) => CallbackStore;
  readonly caughtBy: readonly string[];
  /** A part of what the failing check says. */
  readonly says: RegExp;
}

/** What happens to a call between its caller and a right store. */
export interface Changes {
  readonly key?: (key: string) => string;
  readonly request?: (request: ClaimRequest, key: string) => ClaimRequest;
  readonly claim?: (claim: Claim, key: string, request: ClaimRequest) => Claim | Promise<Claim>;
  readonly lease?: (lease: Lease, key: string, request: ClaimRequest) => Partial<Lease>;
}

/** A right store behind changes. */
export function changedStore(store: CallbackStore, changes: Changes): CallbackStore {
  return {
    async claim(givenKey, givenRequest) {
      const key = changes.key?.(givenKey) ?? givenKey;
      const request = changes.request?.(givenRequest, key) ?? givenRequest;
      const granted = await store.claim(key, request);
      const claim: Claim =
        granted.state === 'claimed'
          ? { state: 'claimed', lease: { ...granted.lease, ...changes.lease?.(granted.lease, key, request) } }
          : granted;
      return changes.claim?.(claim, key, request) ?? claim;
    },
  };
}

/** A way to make memory stores behind changes. */
export const memory = (changes: () => Changes) => (): CallbackStore => changedStore(memoryStore(), changes());

/** Calls something on the lease of the delivery that holds the callback now. */
export function onHolder(changes: (holder: (key: string) => Lease | undefined) => Changes): Changes {
  const holders = new Map<string, Lease>();
  return {
    ...changes((key) => holders.get(key)),
    lease(lease, key, request) {
      holders.set(key, lease);
      return changes((holder) => holders.get(holder)).lease?.(lease, key, request) ?? {};
    },
  };
}
