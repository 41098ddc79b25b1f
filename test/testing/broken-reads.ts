import type { StoreRecord } from 'transfer-callbacks';
import { changed, keyFor, type BrokenInspection } from './changed-inspections.js';

// The titles of the checks of `inspectionContract`, by a short name.
const free = 'a callback that is unknown, released, lapsed or expired is read as free';
const claimed =
  'a claimed callback is read as claimed, and the delivery, lease and time that are shown belong to its claim';
const settled =
  'a settled callback is read with the fingerprint of its claim, and with times that enclose the settling';
const harmless = 'a hundred reads extend no lease, take it from no holder, and block no claim';

/** A store that reads right and shows something else. */
const showing = (show: (record: StoreRecord, key: string) => StoreRecord) =>
  changed((store) => ({ read: async (key) => show(await store.read(key), key) }));

/** Stores whose `read` is wrong, or does more than read. */
export const brokenReads: readonly BrokenInspection[] = [
  {
    fault: 'keeps records since a time that has not come',
    make: () =>
      showing((record) =>
        record.state === 'free'
          ? { ...record, kept: { since: new Date(Date.now() + 60_000), retentionMs: 1_000 } }
          : record,
      ),
    caughtBy: free,
    says: /`kept\.since` is \S+, not between /,
  },
  {
    fault: 'keeps records for no time',
    make: () =>
      showing((record) =>
        record.state === 'free' ? { ...record, kept: { since: new Date(), retentionMs: NaN } } : record,
      ),
    caughtBy: free,
    says: /`kept\.retentionMs` is NaN/,
  },
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
    fault: 'shows 255 characters of the delivery',
    make: () =>
      showing((record) =>
        record.state === 'claimed' ? { ...record, delivery: record.delivery?.slice(0, 255) ?? '' } : record,
      ),
    caughtBy: claimed,
    says: /`delivery` is not the token of the claim/,
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
];
