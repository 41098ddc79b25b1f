import type { Redis } from 'ioredis';
import { redisStore, type InspectableStore, type StoreRecord } from 'transfer-callbacks';
import { changedStore } from './broken-stores.js';

/** A store whose `read` or `forget` has one fault, and the check of `inspectionContract` that must catch it. */
export interface BrokenInspection {
  readonly fault: string;
  readonly make: () => (redis: Redis) => InspectableStore;
  readonly caughtBy: string;
  /** A part of what the failing check says. */
  readonly says: RegExp;
}

// The titles of the checks of `inspectionContract`, by a short name.
const free = 'a callback that is unknown, released, lapsed or expired is read as free';
const claimed =
  'a claimed callback is read as claimed, and the delivery, lease and time that are shown belong to its claim';
const settled =
  'a settled callback is read with the fingerprint of its claim, and with times that enclose the settling';
const harmless = 'a hundred reads extend no lease, take it from no holder, and block no claim';
const refused = 'forget changes nothing if the callback is unknown, claimed, or settled with another fingerprint';
const forgotten =
  'of fifty concurrent calls of forget exactly one deletes the record, and the callback can be settled again';
const lateSuccess = "a late holder's success is recorded even after a forget; a transactional store rejects it";

type Changes = (store: InspectableStore, redis: Redis) => Partial<InspectableStore>;

/** A right store with some methods replaced. */
const changed = (changes: Changes) => (redis: Redis) => {
  const store = redisStore(redis);
  return { ...store, ...changes(store, redis) };
};

/** A store that reads right and shows something else. */
const showing = (show: (record: StoreRecord, key: string) => StoreRecord) =>
  changed((store) => ({ read: async (key) => show(await store.read(key), key) }));

const keyFor = (id: string): string => `transfer-callbacks:${id}`;

export const brokenInspections: readonly BrokenInspection[] = [
  {
    fault: 'reads a settled record after it has expired',
    make: () => {
      const seen = new Map<string, StoreRecord>();
      return showing((record, key) => {
        if (record.state === 'settled') seen.set(key, record);
        return seen.get(key) ?? record;
      });
    },
    caughtBy: free,
    says: /a settled record of \d+ ms has ended, and the callback is not free but settled/,
  },
  {
    fault: 'reads a lease that has lapsed',
    make: () => {
      const seen = new Map<string, StoreRecord>();
      return showing((record, key) => {
        if (record.state === 'claimed') seen.set(key, record);
        return record.state === 'free' ? (seen.get(key) ?? record) : record;
      });
    },
    caughtBy: free,
    says: /a lease of \d+ ms has ended, and the callback is not free but claimed/,
  },
  {
    fault: 'reads an unknown callback as claimed',
    make: () => showing((record) => (record.state === 'free' ? { state: 'claimed' } : record)),
    caughtBy: free,
    says: /an unknown callback is not free/,
  },
  {
    fault: 'reads a claimed callback as free',
    make: () => showing((record) => (record.state === 'claimed' ? { state: 'free' } : record)),
    caughtBy: claimed,
    says: /a claimed callback is free/,
  },
  {
    fault: 'shows the delivery that was refused last',
    make: () => {
      const refusedTokens = new Map<string, string>();
      return (redis) => {
        const store = showing((record, key) =>
          record.state === 'claimed' ? { ...record, delivery: refusedTokens.get(key) ?? '' } : record,
        )(redis);
        return {
          ...store,
          async claim(key, request) {
            const claim = await store.claim(key, request);
            if (claim.state === 'in_progress') refusedTokens.set(key, request.token);
            return claim;
          },
        };
      };
    },
    caughtBy: claimed,
    says: /`delivery` is not the token of the claim/,
  },
  {
    fault: 'shows the rest of a lease in seconds',
    make: () => showing((record) => (record.state === 'claimed' ? { ...record, leaseLeftMs: 30_000 / 1_000 } : record)),
    caughtBy: claimed,
    says: /`leaseLeftMs` is 30/,
  },
  {
    fault: 'shows a lease that is longer than it is',
    make: () => showing((record) => (record.state === 'claimed' ? { ...record, leaseLeftMs: 30_001 } : record)),
    caughtBy: claimed,
    says: /`leaseLeftMs` is 30001/,
  },
  {
    fault: 'shows the time of a claim in seconds',
    make: () =>
      showing((record) => (record.state === 'claimed' ? { ...record, since: new Date(Date.now() / 1_000) } : record)),
    caughtBy: claimed,
    says: /`since` is 1970/,
  },
  {
    fault: 'shows an empty holder',
    make: () => showing((record) => (record.state === 'claimed' ? { ...record, by: '' } : record)),
    caughtBy: claimed,
    says: /`by` is empty/,
  },
  {
    fault: 'reads a settled callback as free',
    make: () => showing((record) => (record.state === 'settled' ? { state: 'free' } : record)),
    caughtBy: settled,
    says: /a settled callback is free/,
  },
  {
    fault: 'cuts the fingerprint that it shows',
    make: () =>
      showing((record) =>
        record.state === 'settled' ? { ...record, fingerprint: record.fingerprint.slice(0, 20) } : record,
      ),
    caughtBy: settled,
    says: /`fingerprint` is not that of the claim/,
  },
  {
    fault: 'shows a time that is none',
    make: () => showing((record) => (record.state === 'settled' ? { ...record, settledAt: new Date(NaN) } : record)),
    caughtBy: settled,
    says: /`settledAt` is no time/,
  },
  {
    fault: 'shows the expiry as the time of settling',
    make: () =>
      showing((record) =>
        record.state === 'settled' && record.expiresAt ? { ...record, settledAt: record.expiresAt } : record,
      ),
    caughtBy: settled,
    says: /`settledAt` is .*, not between/,
  },
  {
    fault: 'shows the time of settling as the expiry',
    make: () => showing((record) => (record.state === 'settled' ? { ...record, expiresAt: new Date() } : record)),
    caughtBy: settled,
    says: /`expiresAt` is .*, not between/,
  },
  {
    fault: 'renews the lease that it reads',
    make: () =>
      changed((store, redis) => ({
        async read(key) {
          const record = await store.read(key);
          if (record.state === 'claimed') await redis.pexpire(keyFor(key), 1_000);
          return record;
        },
      })),
    caughtBy: harmless,
    says: /a lease that is read of \d+ ms never ended/,
  },
  {
    fault: 'reads by claiming',
    make: () =>
      changed((store) => ({
        async read(key) {
          const request = { token: crypto.randomUUID(), fingerprint: '', leaseMs: 2_000, retentionMs: 2_000 };
          const claim = await store.claim(key, request);
          const record = await store.read(key);
          if (claim.state === 'claimed') await claim.lease.release();
          return record;
        },
      })),
    caughtBy: harmless,
    says: /during a hundred reads a claim of a free callback is in_progress/,
  },
  {
    fault: 'takes the lease from the holder when it is read',
    make: () =>
      changed((store, redis) => ({
        async read(key) {
          const record = await store.read(key);
          if (record.state === 'claimed') await redis.set(keyFor(key), 'claimed reader', 'KEEPTTL');
          return record;
        },
      })),
    caughtBy: harmless,
    says: /the renewal of a lease was refused after a hundred reads/,
  },
  {
    fault: 'forgets whatever fingerprint it is given',
    make: () =>
      changed((store) => ({
        async forget(key) {
          const record = await store.read(key);
          return record.state === 'settled' && store.forget(key, record.fingerprint);
        },
      })),
    caughtBy: refused,
    says: /with the fingerprint "facts of b" "facts of a" was forgotten/,
  },
  {
    fault: 'forgets where the fingerprint begins as the given one',
    make: () =>
      changed((store) => ({
        async forget(key, fingerprint) {
          const record = await store.read(key);
          const begins = record.state === 'settled' && record.fingerprint.startsWith(fingerprint);
          return begins && store.forget(key, record.fingerprint);
        },
      })),
    caughtBy: refused,
    says: /with the fingerprint "facts of " "facts of a" was forgotten/,
  },
  {
    fault: 'forgets a claim',
    make: () =>
      changed((store, redis) => ({
        async forget(key, fingerprint) {
          if ((await store.read(key)).state === 'claimed') return (await redis.del(keyFor(key))) === 1;
          return store.forget(key, fingerprint);
        },
      })),
    caughtBy: refused,
    says: /a claim was forgotten/,
  },
  {
    fault: 'forgets a claim and denies it',
    make: () =>
      changed((store, redis) => ({
        async forget(key, fingerprint) {
          if ((await store.read(key)).state === 'claimed') await redis.del(keyFor(key));
          return store.forget(key, fingerprint);
        },
      })),
    caughtBy: refused,
    says: /forgetting a claim ended it/,
  },
  {
    fault: 'resolves with true always',
    make: () =>
      changed((store) => ({
        async forget(key, fingerprint) {
          await store.forget(key, fingerprint);
          return true;
        },
      })),
    caughtBy: refused,
    says: /an unknown callback was forgotten/,
  },
  {
    fault: 'looks first, and then deletes what it has found',
    make: () =>
      changed((store, redis) => ({
        async forget(key, fingerprint) {
          const record = await store.read(key);
          if (record.state !== 'settled' || record.fingerprint !== fingerprint) return false;
          await redis.del(keyFor(key));
          return true;
        },
      })),
    caughtBy: forgotten,
    says: /50 of 50 concurrent calls of `forget` resolved with true/,
  },
  {
    fault: 'forgets nothing',
    make: () => changed(() => ({ forget: () => Promise.resolve(false) })),
    caughtBy: forgotten,
    says: /0 of 50 concurrent calls of `forget` resolved with true/,
  },
  {
    fault: 'hides a settled record in place of forgetting it',
    make: () => {
      const hidden = new Set<string>();
      return changed((store) => ({
        read: (key) => (hidden.has(key) ? Promise.resolve({ state: 'free' }) : store.read(key)),
        forget(key) {
          const isFirst = !hidden.has(key);
          hidden.add(key);
          return Promise.resolve(isFirst);
        },
      }));
    },
    caughtBy: forgotten,
    says: /a free callback was not granted: it is settled/,
  },
  {
    fault: 'drops a success that comes after a forget',
    make: () => (redis) => {
      const gone = new Set<string>();
      const store = redisStore(redis);
      return {
        ...store,
        ...changedStore(store, {
          lease: (lease, key) => ({
            settle: () => (gone.has(key) ? Promise.resolve({ overlapped: true }) : lease.settle()),
          }),
        }),
        async forget(key, fingerprint) {
          const done = await store.forget(key, fingerprint);
          if (done) gone.add(key);
          return done;
        },
      };
    },
    caughtBy: lateSuccess,
    says: /the late success was not recorded/,
  },
];
