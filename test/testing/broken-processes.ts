import { memoryStore, type CallbackStore, type Claim } from 'transfer-callbacks';
import { changedStore, type BrokenStore } from './changed-stores.js';

/** A store that keeps in one process what all must know. Only a second object on the same data shows its fault. */
interface BrokenPair extends Omit<BrokenStore, 'make'> {
  readonly make: () => readonly [CallbackStore, CallbackStore];
}

/** Two objects on the same data, each with leases that trust what their own object knows. */
function trusting(change: (claim: Claim, isNewest: () => boolean, holder: () => Claim) => Partial<Claim>) {
  return (): [CallbackStore, CallbackStore] => {
    const data = memoryStore();
    const holders = new Map<string, Claim>();
    const makeObject = (): CallbackStore => {
      const newest = new Map<string, Claim>();
      return changedStore(data, {
        granted(claim, key) {
          newest.set(key, claim);
          holders.set(key, claim);
          const isNewest = (): boolean => newest.get(key) === claim;
          const changed = { ...claim, ...change(claim, isNewest, () => holders.get(key) ?? claim) };
          return { ...changed, settle: () => changed.settle().finally(() => newest.delete(key)) };
        },
      });
    };
    return [makeObject(), makeObject()];
  };
}

/** An object that keeps claims in one memory store, and successes in another. */
function makeObject(claims: CallbackStore, successes: Required<Omit<CallbackStore, 'check'>>): CallbackStore {
  return changedStore(claims, {
    granted(claim, key, request) {
      let overlapped: boolean | undefined;
      return {
        async settle() {
          overlapped ??= !(await claim.renew());
          await claim.release();
          const record = await successes.claim(key, request);
          if (record.state === 'claimed') await record.claim.settle();
          return { overlapped };
        },
      };
    },
    async claim(reply, key) {
      const record = await successes.read(key);
      if (record.state !== 'handled') return reply;
      if (reply.state === 'claimed') await reply.claim.release();
      return { state: 'handled', fingerprint: record.fingerprint };
    },
  });
}

export const brokenPairs: readonly BrokenPair[] = [
  {
    fault: 'locks within its own process only',
    make() {
      const successes = memoryStore();
      return [makeObject(memoryStore(), successes), makeObject(memoryStore(), successes)];
    },
    caughtBy: ['of fifty concurrent claims exactly', 'a released callback'],
    says: /of 50 concurrent claims/,
  },
  {
    fault: 'remembers a success in its own process only',
    make() {
      const claims = memoryStore();
      return [makeObject(claims, memoryStore()), makeObject(claims, memoryStore())];
    },
    caughtBy: ['the store replies to every claim'],
    says: /state: 'claimed'/,
  },
  {
    fault: 'releases what its own process has claimed last, no matter who holds it',
    make: trusting((claim, isNewest, holder) => ({ release: () => (isNewest() ? holder() : claim).release() })),
    caughtBy: ["a late holder's release"],
    says: /the late release ended the next holder's claim/,
  },
  {
    fault: 'renews what its own process has claimed last, no matter who holds it',
    make: trusting((claim, isNewest, holder) => ({ renew: () => (isNewest() ? holder() : claim).renew() })),
    caughtBy: ["a late holder's renewal is refused and"],
    says: /a lease was renewed that another delivery had taken over/,
  },
  {
    fault: 'reports no overlap with the claims of another process',
    make: trusting((claim, isNewest) => ({
      settle: async () => ({ overlapped: (await claim.settle()).overlapped && !isNewest() }),
    })),
    caughtBy: ["a late holder's success is kept even"],
    says: /overlapped: true/,
  },
  {
    fault: 'reads the records of its own process only',
    make() {
      const data = memoryStore();
      const makeObject = (): CallbackStore => {
        const own = new Set<string>();
        return {
          claim: (key, request) => data.claim(key, request).finally(() => own.add(key)),
          read: (key) => (own.has(key) ? data.read(key) : Promise.resolve({ state: 'free' })),
        };
      };
      return [makeObject(), makeObject()];
    },
    caughtBy: ['a handled callback is read'],
    says: /a handled callback is free/,
  },
];
