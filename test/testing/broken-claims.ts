import type { Claim, ClaimReply } from 'transfer-callbacks';
import { memory, type BrokenStore, type Changes } from './changed-stores.js';
import { keysApart, fiftyFree, fiftyReleased, fiftyLapsed, ownToken, everyToken, lateRelease } from './check-titles.js';

/** Lets two take over a callback that was claimed before. */
function grantsTwo(): Changes {
  const claimed = new Set<string>();
  const spare = new Map<string, ClaimReply>();
  return {
    claim(reply, key) {
      const second = reply.state === 'in_progress' ? spare.get(key) : undefined;
      spare.delete(key);
      if (reply.state === 'claimed' && claimed.has(key)) spare.set(key, reply);
      claimed.add(key);
      return second ?? reply;
    },
  };
}

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

/**
 * Stores that grant a claim to whom it is not due, refuse it to whom it is due, or take two keys or two tokens for one.
 */
export const brokenClaims: readonly BrokenStore[] = [
  {
    fault: 'lets two take over a lapsed lease',
    make: memory(grantsTwo),
    caughtBy: [fiftyLapsed],
    says: /2 of 50 concurrent claims were granted/,
  },
  {
    fault: 'refuses a claim to the token that holds it',
    make: memory(() => ({ request: (request) => ({ ...request, token: crypto.randomUUID() }) })),
    caughtBy: [ownToken],
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
    caughtBy: [everyToken],
    says: /state: 'claimed'/,
  },
  {
    fault: 'calls a callback handled that is in progress',
    make: memory(() => ({
      claim: (reply) => (reply.state === 'in_progress' ? { state: 'handled', fingerprint: '' } : reply),
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
  ...sharedKeys.map(([fault, key, says = /shares a record with another key/]): BrokenStore => {
    return { fault, make: memory(() => ({ key })), caughtBy: [keysApart], says };
  }),
  {
    fault: 'keeps 300 characters of a token',
    make: memory(() => ({ request: (request) => ({ ...request, token: request.token.slice(0, 300) }) })),
    caughtBy: [fiftyFree, ownToken],
    says: /tokens? differs? in (?:its|their) last characters? only/,
  },
  {
    fault: 'rejects tokens of over 36 characters',
    make: memory(() => ({
      request(request) {
        if (request.token.length > 36) throw new Error('value too long for type character varying(36)');
        return request;
      },
    })),
    caughtBy: [fiftyFree, ownToken, lateRelease],
    says: /a claim was rejected with .* a token of 3\d\d, .* characters: .*value too long/,
  },
  {
    fault: 'ignores case in tokens',
    make: memory(() => ({ request: (request) => ({ ...request, token: request.token.toLowerCase() }) })),
    caughtBy: [ownToken],
    says: /whose token differs in its last character only \("A" for "a"\) is claimed/,
  },
];
