import { setTimeout as pause } from 'node:timers/promises';
import { memoryStore, type Claim, type ClaimReply, type ClaimRequest } from 'transfer-callbacks';
import { later } from '../core/support.js';
import { changedStore, memory, type BrokenStore, type Changes } from './changed-stores.js';

const hasEnded = /`ended` of a claim has resolved while it was held/;

/** What stores make of keys that they take for one another, and where the check must name the key. */
const sharedKeys: readonly [fault: string, key: (key: string) => string, says?: RegExp][] = [
  // JavaScript counts an emoji as two.
  ['cuts keys at 255 characters as JavaScript counts them', (key) => key.slice(0, 255)],
  ['pads keys with blanks', (key) => key.padEnd(255), / a " shares a record with another key/],
  [
    'takes the events of two types with one id for one',
    (key) => key.replace(/^other:\w+:/, 'other:'),
    /the key "other:.*" shares a record with another key/,
  ],
  [
    'writes keys without control characters',
    (key) => key.replace(/\p{Cc}/gu, ':'),
    /the key "other.*" shares a record with another key/,
  ],
  ['ignores case in keys', (key) => key.toLowerCase()],
  ['takes every emoji in a key for the same', (key) => key.replace(/[^\0-\uffff]/gu, '\ufffd')],
  ['normalises keys', (key) => key.normalize()],
];

/** Takes something else than what is asked for. */
const asking = (change: (request: ClaimRequest) => Partial<ClaimRequest>) =>
  memory(() => ({ request: (request) => ({ ...request, ...change(request) }) }));

/** Rejects a claim with what its column cannot hold. */
const rejecting = (isTooMuch: (request: ClaimRequest) => boolean, message: string) =>
  asking((request) => {
    if (isTooMuch(request)) throw new Error(message);
    return {};
  });

const granting = (granted: NonNullable<Changes['granted']>) => memory(() => ({ granted }));

/** Calls something on the claim of a callback for which another one is refused. */
const whenRefusing = (state: ClaimReply['state'], call: (holder: Claim) => Promise<unknown>) =>
  memory(() => {
    const holders = new Map<string, Claim>();
    return {
      granted(claim, key) {
        holders.set(key, claim);
        return {};
      },
      async claim(reply, key) {
        const holder = holders.get(key);
        if (holder && reply.state === state) await call(holder);
        return reply;
      },
    };
  });

/** Memory stores behind changes. */
export const brokenMemoryStores: readonly BrokenStore[] = [
  // They hold a lease for another time than they are told, renew it wrongly, or tell its end wrongly.
  {
    fault: 'holds a lease for a second at most',
    make: asking(({ leaseMs }) => ({ leaseMs: Math.min(leaseMs, 1_000) })),
    caughtBy: ['a lease that is not renewed'],
    says: /a lease of \d+ ms lasted only/,
  },
  {
    fault: 'never lets a lease lapse',
    make: asking(() => ({ leaseMs: 1e9 })),
    caughtBy: [
      'a lease that is not renewed',
      'a renewed lease',
      'a lapsed lease',
      "a late holder's renewal is refused and",
    ],
    says: /never ended: no claim was granted/,
  },
  {
    fault: 'prolongs a lease with each claim that it refuses',
    make: whenRefusing('in_progress', (holder) => holder.renew()),
    caughtBy: ['a lease that is not renewed'],
    says: /a lease of \d+ ms never ended/,
  },
  {
    fault: 'renews a lease once only',
    make: granting((claim) => {
      let renewed: Promise<boolean> | undefined;
      return { renew: () => (renewed ??= claim.renew()) };
    }),
    caughtBy: ['a renewed lease'],
    says: /a renewed lease of \d+ ms lasted only/,
  },
  {
    fault: 'tells the end of a claim when its first lease is over',
    make: granting((_claim, _key, { leaseMs }) => ({ ended: pause(leaseMs, undefined, { ref: false }) })),
    caughtBy: ['a claim that is renewed'],
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
    caughtBy: ['a claim that is renewed'],
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
    caughtBy: ['after a release a renewal', "a late holder's renewal after"],
    says: /took the callback/,
  },
  // They grant a claim to whom it is not due, refuse it to whom it is due, or take two keys or two tokens for one.
  {
    fault: 'refuses a claim to the token that holds it',
    make: asking(() => ({ token: crypto.randomUUID() })),
    caughtBy: ['a claim that is sent twice'],
    says: /the holder was refused its own claim/,
  },
  {
    fault: 'grants a handled callback to the token that has handled it',
    make: memory(() => {
      const handled = new Map<string, Claim>();
      return {
        granted: (claim, key, { token }) => ({
          settle: () => claim.settle().finally(() => handled.set(key + token, claim)),
        }),
        claim(reply, key, { token }) {
          const claim = handled.get(key + token);
          return claim ? { state: 'claimed', claim } : reply;
        },
      };
    }),
    caughtBy: ['the store replies to every claim'],
    says: /state: 'claimed'/,
  },
  {
    fault: 'calls a callback handled that is in progress',
    make: memory(() => ({
      claim: (reply) => (reply.state === 'in_progress' ? { state: 'handled', fingerprint: '' } : reply),
    })),
    caughtBy: ['of fifty concurrent claims exactly', 'a claim that is sent twice'],
    says: /in progress/,
  },
  {
    fault: 'keeps a released callback until its lease lapses',
    make: granting(() => ({ release: () => Promise.resolve() })),
    caughtBy: ['a released callback'],
    says: /a released callback was not free/,
  },
  ...sharedKeys.map(([fault, key, says = /shares a record with another key/]): BrokenStore => {
    return { fault, make: memory(() => ({ key })), caughtBy: ['keys of up to 255'], says };
  }),
  {
    fault: 'keeps 300 characters of a token',
    make: asking(({ token }) => ({ token: token.slice(0, 300) })),
    caughtBy: ['of fifty concurrent claims exactly', 'a claim that is sent twice'],
    says: /tokens? differs? in (?:its|their) last characters? only/,
  },
  {
    fault: 'rejects tokens of over 36 characters',
    make: rejecting(({ token }) => token.length > 36, 'value too long for type character varying(36)'),
    caughtBy: ['of fifty concurrent claims exactly', 'a claim that is sent twice', "a late holder's release"],
    says: /a claim was rejected with .* a token of 3\d\d, .* characters: .*value too long/,
  },
  {
    fault: 'ignores case in tokens',
    make: asking(({ token }) => ({ token: token.toLowerCase() })),
    caughtBy: ['a claim that is sent twice'],
    says: /whose token differs in its last character only \("A" for "a"\) is claimed/,
  },
  // They record a success wrongly, or report it wrongly.
  {
    fault: 'replies with the fingerprint of the claim',
    make: memory(() => ({
      claim: (reply, _key, request) =>
        reply.state === 'handled' ? { ...reply, fingerprint: request.fingerprint } : reply,
    })),
    caughtBy: ['the store replies to every claim'],
    says: /other facts/,
  },
  {
    fault: 'forgets a handled record after a second',
    make: asking(({ retentionMs }) => ({ retentionMs: Math.min(retentionMs, 1_000) })),
    caughtBy: ['a handled record outlasts'],
    says: /a handled record was forgotten before its retention had passed/,
  },
  {
    fault: 'drops a success that comes late',
    make: granting((claim) => ({
      settle: async () => ((await claim.renew()) ? claim.settle() : { overlapped: true }),
    })),
    caughtBy: ["a late holder's success is kept and", "a late holder's success is kept even"],
    says: /the late success was not recorded/,
  },
  {
    fault: 'reports no overlap',
    make: granting((claim) => ({ settle: async () => ({ ...(await claim.settle()), overlapped: false }) })),
    caughtBy: ["a late holder's success is kept and", "a late holder's success is kept even"],
    says: /overlapped: true/,
  },
  {
    fault: 'reports an overlap always',
    make: granting((claim) => ({ settle: async () => ({ ...(await claim.settle()), overlapped: true }) })),
    caughtBy: ['the store replies to every claim', 'a second settle', 'a claim that is sent twice'],
    says: /overlapped: false/,
  },
  {
    fault: 'reports an overlap when it settles again',
    make: granting((claim) => {
      let settled = 0;
      return { settle: async () => ({ overlapped: (await claim.settle()).overlapped || (settled += 1) > 1 }) };
    }),
    caughtBy: ['a second settle'],
    says: /overlapped: false/,
  },
  // They keep too little of a callback, keep it of another claim, or forget it early.
  {
    fault: 'keeps the fingerprint of the first claim on a callback',
    make: memory(() => {
      const first = new Map<string, string>();
      return {
        request(request, key) {
          const fingerprint = first.get(key) ?? request.fingerprint;
          first.set(key, fingerprint);
          return { ...request, fingerprint };
        },
      };
    }),
    caughtBy: ['after a release a renewal', "a late holder's renewal is refused and", 'retention counts'],
    says: /facts of (?:a|late)/,
  },
  {
    fault: 'cuts fingerprints at 1 000 characters',
    make: asking(({ fingerprint }) => ({ fingerprint: fingerprint.slice(0, 1_000) })),
    caughtBy: ['an externalId of 1 500'],
    says: /付/,
  },
  {
    fault: 'loses what is not ASCII in a fingerprint',
    make: asking(({ fingerprint }) => ({ fingerprint: fingerprint.replace(/[^\0-\x7f]/gu, '?') })),
    caughtBy: ['an externalId of 1 500'],
    says: /付/,
  },
  ...([64, 255] as const).map((length): BrokenStore => ({
    fault: `rejects an externalId of over ${length} characters`,
    make: rejecting(({ externalId = '' }) => externalId.length > length, `value too long for varchar(${length})`),
    caughtBy: ['an externalId of 1 500', ...(length === 64 ? ['after a release a renewal'] : [])],
    says: /a claim was rejected with .* an externalId of \d{3,4} characters: .*value too long/,
  })),
  {
    fault: 'rejects an externalId that contains NUL',
    make: rejecting(({ externalId = '' }) => externalId.includes('\0'), 'invalid byte sequence for "UTF8": 0x00'),
    caughtBy: ['an externalId of 1 500'],
    says: /a claim was rejected with .*: invalid byte sequence/,
  },
  {
    fault: 'restarts the retention of a handled record with each claim',
    make: whenRefusing('handled', (holder) => holder.settle()),
    caughtBy: ['retention counts'],
    says: /a handled record of \d+ ms never ended/,
  },
  {
    fault: 'keeps a hundred records',
    make: () => memoryStore({ maxEntries: 100 }),
    caughtBy: ['a handled record is kept'],
    says: /a handled record was forgotten when 150 others were handled/,
  },
];
