import { setTimeout as pause } from 'node:timers/promises';
import { memoryStore } from 'transfer-callbacks';
import { later } from '../core/support.js';
import { changedStore, memory, onHolder, type BrokenStore } from './changed-stores.js';
import { lasts, renewedLasts, notEnded, fiftyLapsed, ownRenewal, lateRenewal, goneRenewal } from './check-titles.js';

const hasEnded = /`ended` of a claim has resolved while it was held/;

/** Stores that hold a lease for another time than they are told, renew it wrongly, or tell its end wrongly. */
export const brokenLeases: readonly BrokenStore[] = [
  {
    fault: 'holds a lease for a second at most',
    make: memory(() => ({ request: (request) => ({ ...request, leaseMs: Math.min(request.leaseMs, 1_000) }) })),
    caughtBy: [lasts],
    says: /a lease of \d+ ms lasted only/,
  },
  {
    fault: 'never lets a lease lapse',
    make: memory(() => ({ request: (request) => ({ ...request, leaseMs: 1e9 }) })),
    caughtBy: [lasts, renewedLasts, fiftyLapsed, lateRenewal],
    says: /never ended: no claim was granted/,
  },
  {
    fault: 'prolongs a lease with each claim that it refuses',
    make: memory(() =>
      onHolder((holder) => ({
        async claim(reply, key) {
          if (reply.state === 'in_progress') await holder(key)?.renew();
          return reply;
        },
      })),
    ),
    caughtBy: [lasts],
    says: /a lease of \d+ ms never ended/,
  },
  {
    fault: 'renews a lease once only',
    make: memory(() => ({
      granted(claim) {
        let renewed: Promise<boolean> | undefined;
        return { renew: () => (renewed ??= claim.renew()) };
      },
    })),
    caughtBy: [renewedLasts],
    says: /a renewed lease of \d+ ms lasted only/,
  },
  {
    fault: 'tells the end of a claim that is held',
    make: memory(() => ({ granted: () => ({ ended: Promise.resolve() }) })),
    caughtBy: [notEnded],
    says: hasEnded,
  },
  {
    fault: 'tells the end of a claim when its first lease is over',
    make: memory(() => ({
      granted: (_claim, _key, { leaseMs }) => ({ ended: pause(leaseMs, undefined, { ref: false }) }),
    })),
    caughtBy: [notEnded],
    says: hasEnded,
  },
  {
    fault: 'tells the end of each claim to all of them',
    make: memory(() => {
      const { promise, resolve } = later();
      return {
        granted: (claim) => ({
          ended: promise,
          release: () => claim.release().finally(resolve),
        }),
      };
    }),
    caughtBy: [notEnded],
    says: hasEnded,
  },
  {
    fault: 'refuses to renew a lease that is gone, and claims anew',
    make: () => {
      const store = memoryStore();
      return changedStore(store, {
        granted: (claim, key, request) => ({
          async renew() {
            if (await claim.renew()) return true;
            await store.claim(key, request);
            return false;
          },
        }),
      });
    },
    caughtBy: [ownRenewal, goneRenewal],
    says: /took the callback/,
  },
];
