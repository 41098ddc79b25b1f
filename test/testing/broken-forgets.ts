import { redisStore } from 'transfer-callbacks';
import { forgetsOne, forgetsSeen, lateAfterForget } from './check-titles.js';
import { changed, changedStore, keyFor, type BrokenStore } from './changed-stores.js';

/** Stores whose `forget` is wrong, or does not hold. */
export const brokenForgets: readonly BrokenStore[] = [
  {
    fault: 'forgets where the fingerprint begins as the given one',
    make: changed((store) => ({
      async forget(key, fingerprint) {
        const record = await store.read(key);
        const begins = record.state === 'handled' && record.fingerprint.startsWith(fingerprint);
        return begins && store.forget(key, record.fingerprint);
      },
    })),
    caughtBy: [forgetsSeen],
    says: /with the fingerprint "facts of " "facts of a" was forgotten/,
  },
  {
    fault: 'forgets a claim',
    make: changed((store, redis) => ({
      async forget(key, fingerprint) {
        if ((await store.read(key)).state === 'claimed') return (await redis.del(keyFor(key))) === 1;
        return store.forget(key, fingerprint);
      },
    })),
    caughtBy: [forgetsSeen],
    says: /a claim was forgotten/,
  },
  {
    fault: 'forgets a claim and denies it',
    make: changed((store, redis) => ({
      async forget(key, fingerprint) {
        if ((await store.read(key)).state === 'claimed') await redis.del(keyFor(key));
        return store.forget(key, fingerprint);
      },
    })),
    caughtBy: [forgetsSeen],
    says: /forgetting a claim ended it/,
  },
  {
    fault: 'resolves with true always',
    make: changed((store) => ({
      async forget(key, fingerprint) {
        await store.forget(key, fingerprint);
        return true;
      },
    })),
    caughtBy: [forgetsSeen],
    says: /an unknown callback was forgotten/,
  },
  {
    fault: 'looks first, and then deletes what it has found',
    make: changed((store, redis) => ({
      async forget(key, fingerprint) {
        const record = await store.read(key);
        if (record.state !== 'handled' || record.fingerprint !== fingerprint) return false;
        await redis.del(keyFor(key));
        return true;
      },
    })),
    caughtBy: [forgetsOne],
    says: /50 of 50 concurrent calls of `forget` resolved with true/,
  },
  {
    fault: 'hides a handled record in place of forgetting it',
    make(redis) {
      const hidden = new Set<string>();
      return changed((store) => ({
        read: (key) => (hidden.has(key) ? Promise.resolve({ state: 'free' }) : store.read(key)),
        forget(key) {
          const isFirst = !hidden.has(key);
          hidden.add(key);
          return Promise.resolve(isFirst);
        },
      }))(redis);
    },
    caughtBy: [forgetsOne],
    says: /a free callback was not granted: it is handled/,
  },
  {
    fault: 'drops a success that comes after a forget',
    make(redis) {
      const gone = new Set<string>();
      const store = redisStore(redis);
      return {
        ...store,
        ...changedStore(store, {
          granted: (claim, key) => ({
            settle: () => (gone.has(key) ? Promise.resolve({ overlapped: true }) : claim.settle()),
          }),
        }),
        async forget(key, fingerprint) {
          const done = await store.forget(key, fingerprint);
          if (done) gone.add(key);
          return done;
        },
      };
    },
    caughtBy: [lateAfterForget],
    says: /the late success was not recorded/,
  },
];
