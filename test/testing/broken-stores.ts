import type { Redis } from 'ioredis';
import { memoryStore, type CallbackStore, type Claim, type ClaimRequest, type Lease } from 'transfer-callbacks';
import {
  lasts,
  renewedLasts,
  keysApart,
  fingerprint,
  outlasts,
  fiftyFree,
  fiftyReleased,
  fiftyLapsed,
  fiftyForgotten,
  ownToken,
  everyToken,
  settledTwice,
  ownRenewal,
  lateRenewal,
  goneRenewal,
  lateRelease,
  lateSuccess,
  lostSuccess,
} from './check-titles.js';

/** A store with one fault, and the checks of `storeContract` that must catch it. */
export interface BrokenStore {
  readonly fault: string;
  readonly make: (redis: Redis) => CallbackStore;
  readonly caughtBy: readonly string[];
  /** A part of what the failing check says. */
  readonly says: RegExp;
}

/** What happens to a call between its caller and a right store. */
interface Changes {
  readonly key?: (key: string) => string;
  readonly request?: (request: ClaimRequest) => ClaimRequest;
  readonly claim?: (claim: Claim, key: string, request: ClaimRequest) => Claim | Promise<Claim>;
  readonly lease?: (lease: Lease, key: string, request: ClaimRequest) => Partial<Lease>;
}

/** A right store behind changes. */
export function changedStore(store: CallbackStore, changes: Changes): CallbackStore {
  return {
    async claim(givenKey, givenRequest) {
      const key = changes.key?.(givenKey) ?? givenKey;
      const request = changes.request?.(givenRequest) ?? givenRequest;
      const granted = await store.claim(key, request);
      const claim: Claim =
        granted.state === 'claimed'
          ? { state: 'claimed', lease: { ...granted.lease, ...changes.lease?.(granted.lease, key, request) } }
          : granted;
      return changes.claim?.(claim, key, request) ?? claim;
    },
  };
}

const memory = (changes: () => Changes) => (): CallbackStore => changedStore(memoryStore(), changes());

/** Grants one more claim on a callback whose last holder has ended like this. */
function grantsTwo(after: 'claimed' | 'released' | 'settled'): Changes {
  const last = new Map<string, string>();
  const spare = new Map<string, Claim>();
  return {
    lease: (lease, key) => ({
      release: () => lease.release().finally(() => last.set(key, 'released')),
      settle: () => lease.settle().finally(() => last.set(key, 'settled')),
    }),
    claim(claim, key) {
      const second = claim.state === 'in_progress' ? spare.get(key) : undefined;
      spare.delete(key);
      if (claim.state === 'claimed') {
        if (last.get(key) === after) spare.set(key, claim);
        last.set(key, 'claimed');
      }
      return second ?? claim;
    },
  };
}

/** Calls something on the lease of whoever holds the callback now. */
function onHolder(changes: (holder: (key: string) => Lease | undefined) => Changes): Changes {
  const holders = new Map<string, Lease>();
  return {
    ...changes((key) => holders.get(key)),
    lease(lease, key, request) {
      holders.set(key, lease);
      return changes((holder) => holders.get(holder)).lease?.(lease, key, request) ?? {};
    },
  };
}

export const brokenMemoryStores: readonly BrokenStore[] = [
  {
    fault: 'holds a lease for half its length',
    make: memory(() => ({ request: (request) => ({ ...request, leaseMs: request.leaseMs / 2 }) })),
    caughtBy: [lasts, renewedLasts],
    says: /lasted only|refused within its length/,
  },
  {
    fault: 'holds a lease for a second at most',
    make: memory(() => ({ request: (request) => ({ ...request, leaseMs: Math.min(request.leaseMs, 1_000) }) })),
    caughtBy: [lasts],
    says: /a lease of \d+ ms lasted only/,
  },
  {
    fault: 'holds a lease twice as long',
    make: memory(() => ({ request: (request) => ({ ...request, leaseMs: request.leaseMs * 2 }) })),
    caughtBy: [lasts],
    says: /a lease of \d+ ms never ended/,
  },
  {
    fault: 'never lets a lease lapse',
    make: memory(() => ({ request: (request) => ({ ...request, leaseMs: 1e9 }) })),
    caughtBy: [lasts, renewedLasts, fiftyLapsed, lateRenewal],
    says: /never ended: the callback was still taken/,
  },
  {
    fault: 'prolongs a lease with each claim that it refuses',
    make: memory(() =>
      onHolder((holder) => ({
        async claim(claim, key) {
          if (claim.state === 'in_progress') await holder(key)?.renew();
          return claim;
        },
      })),
    ),
    caughtBy: [lasts],
    says: /a lease of \d+ ms never ended/,
  },
  {
    fault: 'never lets a renewed lease lapse',
    make: () => {
      const store = memoryStore();
      return changedStore(store, {
        lease: (lease, key, request) => ({
          async renew() {
            const renewed = await lease.renew();
            if (renewed) await store.claim(key, { ...request, leaseMs: 1e9 });
            return renewed;
          },
        }),
      });
    },
    caughtBy: [renewedLasts],
    says: /a renewed lease of \d+ ms never ended/,
  },
  {
    fault: 'says that it has renewed a lease, and does nothing',
    make: memory(() => ({ lease: () => ({ renew: () => Promise.resolve(true) }) })),
    caughtBy: [renewedLasts],
    says: /a renewed lease of \d+ ms lasted only/,
  },
  {
    fault: 'renews a lease once only',
    make: memory(() => ({
      lease(lease) {
        let renewed: Promise<boolean> | undefined;
        return { renew: () => (renewed ??= lease.renew()) };
      },
    })),
    caughtBy: [renewedLasts],
    says: /a renewed lease of \d+ ms lasted only/,
  },
  {
    fault: 'lets two take over a lapsed lease',
    make: memory(() => grantsTwo('claimed')),
    caughtBy: [fiftyLapsed],
    says: /2 of 50 concurrent claims were granted/,
  },
  {
    fault: 'grants a released callback to two',
    make: memory(() => grantsTwo('released')),
    caughtBy: [fiftyReleased],
    says: /2 of 50 concurrent claims were granted/,
  },
  {
    fault: 'grants a callback to two when its retention has ended',
    make: memory(() => grantsTwo('settled')),
    caughtBy: [fiftyForgotten],
    says: /2 of 50 concurrent claims were granted/,
  },
  {
    fault: 'refuses a claim to the token that holds it',
    make: memory(() => ({ request: (request) => ({ ...request, token: crypto.randomUUID() }) })),
    caughtBy: [ownToken],
    says: /the holder was refused its own claim/,
  },
  {
    fault: 'grants a settled callback to the token that has settled it',
    make: memory(() => {
      const settled = new Map<string, Lease>();
      return {
        lease: (lease, key, { token }) => ({
          settle: () => lease.settle().finally(() => settled.set(key + token, lease)),
        }),
        claim(claim, key, { token }) {
          const lease = settled.get(key + token);
          return lease ? { state: 'claimed', lease } : claim;
        },
      };
    }),
    caughtBy: [everyToken],
    says: /state: 'claimed'/,
  },
  {
    fault: 'calls a callback settled that is in progress',
    make: memory(() => ({
      claim: (claim) => (claim.state === 'in_progress' ? { state: 'settled', fingerprint: '' } : claim),
    })),
    caughtBy: [fiftyFree, ownToken],
    says: /in progress/,
  },
  {
    fault: 'keeps a released callback until its lease lapses',
    make: memory(() => ({ lease: () => ({ release: () => Promise.resolve() }) })),
    caughtBy: [fiftyReleased],
    says: /a released callback was not free/,
  },
  {
    fault: 'cuts keys at 128 characters',
    make: memory(() => ({ key: (key) => key.slice(0, 128) })),
    caughtBy: [keysApart],
    says: /shares a record with another key/,
  },
  {
    fault: 'trims keys',
    make: memory(() => ({ key: (key) => key.trim() })),
    caughtBy: [keysApart],
    says: /shares a record with another key/,
  },
  {
    fault: 'pads keys with blanks',
    make: memory(() => ({ key: (key) => key.padEnd(255) })),
    caughtBy: [keysApart],
    says: / a " shares a record with another key/,
  },
  {
    fault: 'ignores case in keys',
    make: memory(() => ({ key: (key) => key.toLowerCase() })),
    caughtBy: [keysApart],
    says: /shares a record with another key/,
  },
  {
    fault: 'takes every emoji in a key for the same',
    make: memory(() => ({ key: (key) => key.replace(/[^\0-\uffff]/gu, '\ufffd') })),
    caughtBy: [keysApart],
    says: /shares a record with another key/,
  },
  {
    fault: 'normalises keys',
    make: memory(() => ({ key: (key) => key.normalize() })),
    caughtBy: [keysApart],
    says: /shares a record with another key/,
  },
  {
    fault: 'cuts fingerprints at 64 characters',
    make: memory(() => ({ request: (request) => ({ ...request, fingerprint: request.fingerprint.slice(0, 64) }) })),
    caughtBy: [fingerprint],
    says: /付/,
  },
  {
    fault: 'loses what is not ASCII in a fingerprint',
    make: memory(() => ({
      request: (request) => ({ ...request, fingerprint: request.fingerprint.replace(/[^\0-\x7f]/gu, '?') }),
    })),
    caughtBy: [fingerprint],
    says: /付/,
  },
  {
    fault: 'answers with the fingerprint of the claim',
    make: memory(() => ({
      claim: (claim, _key, request) =>
        claim.state === 'settled' ? { ...claim, fingerprint: request.fingerprint } : claim,
    })),
    caughtBy: [everyToken],
    says: /other facts/,
  },
  {
    fault: 'forgets a settled record after a second',
    make: memory(() => ({ request: (request) => ({ ...request, retentionMs: Math.min(request.retentionMs, 1_000) }) })),
    caughtBy: [outlasts],
    says: /a settled record was forgotten before its retention had passed/,
  },
  {
    fault: 'renews a lease that is gone by claiming anew',
    make: () => {
      const store = memoryStore();
      return changedStore(store, {
        lease: (lease, key, request) => ({
          renew: async () => (await lease.renew()) || (await store.claim(key, request)).state === 'claimed',
        }),
      });
    },
    caughtBy: [ownRenewal, goneRenewal],
    says: /a lease was renewed that had lapsed|a released lease was renewed/,
  },
  {
    fault: 'refuses to renew a lease that is gone, and claims anew',
    make: () => {
      const store = memoryStore();
      return changedStore(store, {
        lease: (lease, key, request) => ({
          async renew() {
            if (await lease.renew()) return true;
            await store.claim(key, request);
            return false;
          },
        }),
      });
    },
    caughtBy: [ownRenewal, goneRenewal],
    says: /took the callback/,
  },
  {
    fault: 'releases the claim of another',
    make: memory(() =>
      onHolder((holder) => ({ lease: (_lease, key) => ({ release: async () => holder(key)?.release() }) })),
    ),
    caughtBy: [lateRelease],
    says: /the late release ended the next holder's claim/,
  },
  {
    fault: 'drops a success that comes late',
    make: memory(() => ({
      lease: (lease) => ({
        settle: async () => ((await lease.renew()) ? lease.settle() : { overlapped: true }),
      }),
    })),
    caughtBy: [lateSuccess, lostSuccess],
    says: /the late success was not recorded/,
  },
  {
    fault: 'rejects a success that comes late',
    make: memory(() => ({
      lease: (lease) => ({
        async settle() {
          if (!(await lease.renew())) throw new Error('The lease has lapsed.');
          return lease.settle();
        },
      }),
    })),
    caughtBy: [lateSuccess, lostSuccess],
    says: /The lease has lapsed./,
  },
  {
    fault: 'reports no overlap',
    make: memory(() => ({
      lease: (lease) => ({ settle: async () => ({ ...(await lease.settle()), overlapped: false }) }),
    })),
    caughtBy: [lateSuccess, lostSuccess],
    says: /overlapped: true/,
  },
  {
    fault: 'reports an overlap always',
    make: memory(() => ({
      lease: (lease) => ({ settle: async () => ({ ...(await lease.settle()), overlapped: true }) }),
    })),
    caughtBy: [everyToken, settledTwice, ownToken],
    says: /overlapped: false/,
  },
  {
    fault: 'reports an overlap when it settles again',
    make: memory(() => ({
      lease(lease) {
        let settled = false;
        return {
          async settle() {
            const again = settled;
            settled = true;
            return { overlapped: (await lease.settle()).overlapped || again };
          },
        };
      },
    })),
    caughtBy: [settledTwice],
    says: /overlapped: false/,
  },
];
