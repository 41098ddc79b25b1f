import type { Redis } from 'ioredis';
import { redisStore, type CallbackStore } from 'transfer-callbacks';

type Store = Required<CallbackStore>;

/** The store of Redis with some methods replaced. */
export const changed =
  (changes: (store: Store, redis: Redis) => Partial<Store>) =>
  (redis: Redis): Store => {
    const store = redisStore(redis);
    return { ...store, ...changes(store, redis) };
  };

/** The key of the Redis store for a callback. */
export const keyFor = (id: string): string => `transfer-callbacks:${id}`;
