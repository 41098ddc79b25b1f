import type { Redis } from 'ioredis';
import { redisStore, type InspectableStore } from 'transfer-callbacks';

/** A store whose `read` or `forget` has one fault, and the check of `inspectionContract` that must catch it. */
export interface BrokenInspection {
  readonly fault: string;
  readonly make: () => (redis: Redis) => InspectableStore;
  readonly caughtBy: string;
  /** A part of what the failing check says. */
  readonly says: RegExp;
}

type Changes = (store: InspectableStore, redis: Redis) => Partial<InspectableStore>;

/** A right store with some methods replaced. */
export const changed = (changes: Changes) => (redis: Redis) => {
  const store = redisStore(redis);
  return { ...store, ...changes(store, redis) };
};

/** The key of the Redis store for a callback. */
export const keyFor = (id: string): string => `transfer-callbacks:${id}`;
