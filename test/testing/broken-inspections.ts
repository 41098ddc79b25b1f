import type { Redis } from 'ioredis';
import type { StoreRecord } from 'transfer-callbacks';
import { changed, changedStore, keyFor, type BrokenStore } from './changed-stores.js';

/** A store that reads right and shows something else. */
const showing = (show: (record: StoreRecord, key: string) => StoreRecord) =>
  changed((store) => ({ read: async (key) => show(await store.read(key), key) }));

/** A store that shows what it has last read in this state once the callback is free. */
const remembering = (state: StoreRecord['state']) => (redis: Redis) => {
  const seen = new Map<string, StoreRecord>();
  return showing((record, key) => {
    if (record.state === state) seen.set(key, record);
    return record.state === 'free' ? (seen.get(key) ?? record) : record;
  })(redis);
};

/** What stores show wrongly of a record that `read` finds. */
type Shown<State extends StoreRecord['state']> = readonly [
  fault: string,
  show: (record: StoreRecord & { state: State }) => object,
  says: RegExp,
];

const ofClaims: readonly Shown<'claimed'>[] = [
  ['reads a claimed callback as free', () => ({ state: 'free' }), /a claimed callback is free/],
  [
    'shows 255 characters of the delivery',
    ({ delivery }) => ({ delivery: delivery?.slice(0, 255) ?? '' }),
    /`delivery` is not the token of the claim/,
  ],
  ['shows the rest of a lease in seconds', () => ({ leaseLeftMs: 30 }), /`leaseLeftMs` is 30/],
  ['shows a lease that is longer than it is', () => ({ leaseLeftMs: 30_001 }), /`leaseLeftMs` is 30001/],
  ['shows the time of a claim in seconds', () => ({ since: new Date(Date.now() / 1_000) }), /`since` is 1970/],
  ['shows an empty holder', () => ({ by: '' }), /`by` is empty/],
];

const ofSuccesses: readonly Shown<'handled'>[] = [
  ['reads a handled callback as free', () => ({ state: 'free' }), /a handled callback is free/],
  [
    'cuts the fingerprint that it shows',
    ({ fingerprint }) => ({ fingerprint: fingerprint.slice(0, 20) }),
    /`fingerprint` is not that of the claim/,
  ],
  ['shows a time that is none', () => ({ handledAt: new Date(NaN) }), /`handledAt` is no time/],
  [
    'shows the expiry as the time of settling',
    ({ expiresAt }) => ({ handledAt: expiresAt }),
    /`handledAt` is .*, not between/,
  ],
  ['shows the time of settling as the expiry', () => ({ expiresAt: new Date() }), /`expiresAt` is .*, not between/],
];

/** The stores that show records in one state wrongly. */
const toStores = <State extends StoreRecord['state']>(
  state: State,
  rows: readonly Shown<State>[],
  check: string,
): BrokenStore[] =>
  rows.map(([fault, show, says]) => ({
    ...{ fault, says, caughtBy: [check] },
    make: showing((record) => {
      if (record.state !== state) return record;
      return { ...record, ...show(record as StoreRecord & { state: State }) };
    }),
  }));

/** Stores whose `read` or `forget` is wrong, or does more than it should. */
export const brokenInspections: readonly BrokenStore[] = [
  ...toStores('claimed', ofClaims, 'a claimed callback is read'),
  ...toStores('handled', ofSuccesses, 'a handled callback is read'),
  {
    fault: 'reads a handled record after it has expired',
    make: remembering('handled'),
    caughtBy: ['a callback that is unknown'],
    says: /a handled record of \d+ ms has ended, and the callback is not free but handled/,
  },
  {
    fault: 'reads a lease that has lapsed',
    make: remembering('claimed'),
    caughtBy: ['a callback that is unknown'],
    says: /a lease of \d+ ms has ended, and the callback is not free but claimed/,
  },
  {
    fault: 'reads an unknown callback as claimed',
    make: showing((record) => (record.state === 'free' ? { state: 'claimed' } : record)),
    caughtBy: ['a callback that is unknown'],
    says: /an unknown callback is not free/,
  },
  {
    fault: 'shows the delivery that was refused last',
    make(redis) {
      const refusedTokens = new Map<string, string>();
      const store = showing((record, key) =>
        record.state === 'claimed' ? { ...record, delivery: refusedTokens.get(key) ?? '' } : record,
      )(redis);
      return {
        ...store,
        async claim(key, request) {
          const reply = await store.claim(key, request);
          if (reply.state === 'in_progress') refusedTokens.set(key, request.token);
          return reply;
        },
      };
    },
    caughtBy: ['a claimed callback is read'],
    says: /`delivery` is not the token of the claim/,
  },
  {
    fault: 'renews the lease that it reads',
    make: changed((store, redis) => ({
      async read(key) {
        const record = await store.read(key);
        if (record.state === 'claimed') await redis.pexpire(keyFor(key), 1_000);
        return record;
      },
    })),
    caughtBy: ['a hundred reads'],
    says: /a lease that is read of \d+ ms never ended/,
  },
  {
    fault: 'reads by claiming',
    make: changed((store) => ({
      async read(key) {
        const request = { token: crypto.randomUUID(), fingerprint: '', leaseMs: 2_000, retentionMs: 2_000 };
        const reply = await store.claim(key, request);
        const record = await store.read(key);
        if (reply.state === 'claimed') await reply.claim.release();
        return record;
      },
    })),
    caughtBy: ['a hundred reads'],
    says: /during a hundred reads a claim of a free callback is in_progress/,
  },
  {
    fault: 'takes the lease from the holder when it is read',
    make: changed((store, redis) => ({
      async read(key) {
        const record = await store.read(key);
        if (record.state === 'claimed') await redis.set(keyFor(key), 'claimed reader', 'KEEPTTL');
        return record;
      },
    })),
    caughtBy: ['a hundred reads'],
    says: /the renewal of a lease was refused after a hundred reads/,
  },
  {
    fault: 'forgets where the fingerprint begins as the given one',
    make: changed((store) => ({
      async forget(key, fingerprint) {
        const record = await store.read(key);
        const begins = record.state === 'handled' && record.fingerprint.startsWith(fingerprint);
        return begins && store.forget(key, record.fingerprint);
      },
    })),
    caughtBy: ['forget changes nothing'],
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
    caughtBy: ['forget changes nothing'],
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
    caughtBy: ['forget changes nothing'],
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
    caughtBy: ['forget changes nothing'],
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
    caughtBy: ['of fifty concurrent calls of forget'],
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
    caughtBy: ['of fifty concurrent calls of forget'],
    says: /a free callback was not granted: it is handled/,
  },
  {
    fault: 'drops a success that comes after a forget',
    make(redis) {
      const gone = new Set<string>();
      return changed((store) => ({
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
      }))(redis);
    },
    caughtBy: ["a late holder's success is recorded"],
    says: /the late success was not recorded/,
  },
];
