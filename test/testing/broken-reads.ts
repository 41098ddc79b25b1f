import type { StoreRecord } from 'transfer-callbacks';
import { readClaimed, readFree, readHarmless, readHandled } from './check-titles.js';
import { changed, keyFor, type BrokenStore } from './changed-stores.js';

/** A store that reads right and shows something else. */
const showing = (show: (record: StoreRecord, key: string) => StoreRecord) =>
  changed((store) => ({ read: async (key) => show(await store.read(key), key) }));

/** Stores whose `read` is wrong, or does more than read. */
export const brokenReads: readonly BrokenStore[] = [
  {
    fault: 'reads a handled record after it has expired',
    make(redis) {
      const seen = new Map<string, StoreRecord>();
      return showing((record, key) => {
        if (record.state === 'handled') seen.set(key, record);
        return seen.get(key) ?? record;
      })(redis);
    },
    caughtBy: [readFree],
    says: /a handled record of \d+ ms has ended, and the callback is not free but handled/,
  },
  {
    fault: 'reads a lease that has lapsed',
    make(redis) {
      const seen = new Map<string, StoreRecord>();
      return showing((record, key) => {
        if (record.state === 'claimed') seen.set(key, record);
        return record.state === 'free' ? (seen.get(key) ?? record) : record;
      })(redis);
    },
    caughtBy: [readFree],
    says: /a lease of \d+ ms has ended, and the callback is not free but claimed/,
  },
  {
    fault: 'reads an unknown callback as claimed',
    make: showing((record) => (record.state === 'free' ? { state: 'claimed' } : record)),
    caughtBy: [readFree],
    says: /an unknown callback is not free/,
  },
  {
    fault: 'reads a claimed callback as free',
    make: showing((record) => (record.state === 'claimed' ? { state: 'free' } : record)),
    caughtBy: [readClaimed],
    says: /a claimed callback is free/,
  },
  {
    fault: 'shows 255 characters of the delivery',
    make: showing((record) =>
      record.state === 'claimed' ? { ...record, delivery: record.delivery?.slice(0, 255) ?? '' } : record,
    ),
    caughtBy: [readClaimed],
    says: /`delivery` is not the token of the claim/,
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
    caughtBy: [readClaimed],
    says: /`delivery` is not the token of the claim/,
  },
  {
    fault: 'shows the rest of a lease in seconds',
    make: showing((record) => (record.state === 'claimed' ? { ...record, leaseLeftMs: 30_000 / 1_000 } : record)),
    caughtBy: [readClaimed],
    says: /`leaseLeftMs` is 30/,
  },
  {
    fault: 'shows a lease that is longer than it is',
    make: showing((record) => (record.state === 'claimed' ? { ...record, leaseLeftMs: 30_001 } : record)),
    caughtBy: [readClaimed],
    says: /`leaseLeftMs` is 30001/,
  },
  {
    fault: 'shows the time of a claim in seconds',
    make: showing((record) =>
      record.state === 'claimed' ? { ...record, since: new Date(Date.now() / 1_000) } : record,
    ),
    caughtBy: [readClaimed],
    says: /`since` is 1970/,
  },
  {
    fault: 'shows an empty holder',
    make: showing((record) => (record.state === 'claimed' ? { ...record, by: '' } : record)),
    caughtBy: [readClaimed],
    says: /`by` is empty/,
  },
  {
    fault: 'reads a handled callback as free',
    make: showing((record) => (record.state === 'handled' ? { state: 'free' } : record)),
    caughtBy: [readHandled],
    says: /a handled callback is free/,
  },
  {
    fault: 'cuts the fingerprint that it shows',
    make: showing((record) =>
      record.state === 'handled' ? { ...record, fingerprint: record.fingerprint.slice(0, 20) } : record,
    ),
    caughtBy: [readHandled],
    says: /`fingerprint` is not that of the claim/,
  },
  {
    fault: 'shows a time that is none',
    make: showing((record) => (record.state === 'handled' ? { ...record, handledAt: new Date(NaN) } : record)),
    caughtBy: [readHandled],
    says: /`handledAt` is no time/,
  },
  {
    fault: 'shows the expiry as the time of settling',
    make: showing((record) =>
      record.state === 'handled' && record.expiresAt ? { ...record, handledAt: record.expiresAt } : record,
    ),
    caughtBy: [readHandled],
    says: /`handledAt` is .*, not between/,
  },
  {
    fault: 'shows the time of settling as the expiry',
    make: showing((record) => (record.state === 'handled' ? { ...record, expiresAt: new Date() } : record)),
    caughtBy: [readHandled],
    says: /`expiresAt` is .*, not between/,
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
    caughtBy: [readHarmless],
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
    caughtBy: [readHarmless],
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
    caughtBy: [readHarmless],
    says: /the renewal of a lease was refused after a hundred reads/,
  },
];
