import type { Redis } from 'ioredis';
import {
  memoryStore,
  redisStore,
  type CallbackStore,
  type ClaimReply,
  type ClaimRequest,
  type Claim,
} from 'transfer-callbacks';
import { storeContract, type StoreCheck } from 'transfer-callbacks/testing';
import { expect } from 'vitest';

/** Finds the one check whose title begins so. */
export function findCheck(title: string): StoreCheck {
  const [found, ...others] = storeContract.filter((check) => check.title.startsWith(title));
  return found && others.length === 0 ? found : expect.fail(`Not one check begins with "${title}".`);
}

/** A store with one fault, and the beginnings of the titles of the checks that must catch it. */
export interface BrokenStore {
  readonly fault: string;
  readonly make: (redis: Redis) => CallbackStore;
  readonly caughtBy: readonly string[];
  /** A part of what each of these checks says. */
  readonly says: RegExp;
}

/** What happens to a call between its caller and a right store. */
export interface Changes {
  readonly key?: (key: string) => string;
  readonly request?: (request: ClaimRequest, key: string) => ClaimRequest;
  readonly claim?: (reply: ClaimReply, key: string, request: ClaimRequest) => ClaimReply | Promise<ClaimReply>;
  readonly granted?: (claim: Claim, key: string, request: ClaimRequest) => Partial<Claim>;
}

/** A right store behind changes. */
export function changedStore(store: CallbackStore, changes: Changes): CallbackStore {
  return {
    async claim(givenKey, givenRequest) {
      const key = changes.key?.(givenKey) ?? givenKey;
      const request = changes.request?.(givenRequest, key) ?? givenRequest;
      const granted = await store.claim(key, request);
      const reply: ClaimReply =
        granted.state === 'claimed'
          ? { state: 'claimed', claim: { ...granted.claim, ...changes.granted?.(granted.claim, key, request) } }
          : granted;
      return changes.claim?.(reply, key, request) ?? reply;
    },
  };
}

/** A way to make memory stores behind changes. */
export const memory = (changes: () => Changes) => (): CallbackStore => changedStore(memoryStore(), changes());

type Store = Required<Omit<CallbackStore, 'check'>>;

/** The store of Redis with some methods replaced. */
export const changed =
  (changes: (store: Store, redis: Redis) => Partial<Store>) =>
  (redis: Redis): Store => {
    const store = redisStore(redis);
    return { ...store, ...changes(store, redis) };
  };

/** The key of the Redis store for a callback. */
export const keyFor = (id: string): string => `transfer-callbacks:${id}`;
