import type { Claim, ClaimReply } from 'transfer-callbacks';
import { memory, onHolder, type BrokenStore, type Changes } from './changed-stores.js';
import {
  keysApart,
  fiftyFree,
  fiftyReleased,
  fiftyLapsed,
  fiftyForgotten,
  ownToken,
  everyToken,
  lateRelease,
} from './check-titles.js';

/** Grants one more claim on a callback whose last holder has ended like this. */
function grantsTwo(after: 'claimed' | 'released' | 'settled'): Changes {
  const last = new Map<string, string>();
  const spare = new Map<string, ClaimReply>();
  return {
    granted: (claim, key) => ({
      release: () => claim.release().finally(() => last.set(key, 'released')),
      settle: () => claim.settle().finally(() => last.set(key, 'settled')),
    }),
    claim(reply, key) {
      const second = reply.state === 'in_progress' ? spare.get(key) : undefined;
      spare.delete(key);
      if (reply.state === 'claimed') {
        if (last.get(key) === after) spare.set(key, reply);
        last.set(key, 'claimed');
      }
      return second ?? reply;
    },
  };
}

/** Stores that grant a claim to whom it is not due, refuse it to whom it is due, or take two keys for one. */
export const brokenClaims: readonly BrokenStore[] = [
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
      const settled = new Map<string, Claim>();
      return {
        granted: (claim, key, { token }) => ({
          settle: () => claim.settle().finally(() => settled.set(key + token, claim)),
        }),
        claim(reply, key, { token }) {
          const claim = settled.get(key + token);
          return claim ? { state: 'claimed', claim } : reply;
        },
      };
    }),
    caughtBy: [everyToken],
    says: /state: 'claimed'/,
  },
  {
    fault: 'calls a callback settled that is in progress',
    make: memory(() => ({
      claim: (reply) => (reply.state === 'in_progress' ? { state: 'settled', fingerprint: '' } : reply),
    })),
    caughtBy: [fiftyFree, ownToken],
    says: /in progress/,
  },
  {
    fault: 'keeps a released callback until its lease lapses',
    make: memory(() => ({ granted: () => ({ release: () => Promise.resolve() }) })),
    caughtBy: [fiftyReleased],
    says: /a released callback was not free/,
  },
  ...[128, 255].map((length) => ({
    // JavaScript counts an emoji as two.
    fault: `cuts keys at ${length} characters as JavaScript counts them`,
    make: memory(() => ({ key: (key) => key.slice(0, length) })),
    caughtBy: [keysApart],
    says: /shares a record with another key/,
  })),
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
    fault: 'releases the claim of another',
    make: memory(() =>
      onHolder((holder) => ({ granted: (_lease, key) => ({ release: async () => holder(key)?.release() }) })),
    ),
    caughtBy: [lateRelease],
    says: /the late release ended the next holder's claim/,
  },
];
