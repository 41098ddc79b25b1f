import { memory, type BrokenStore } from './changed-stores.js';
import { fiftyFree, lateRelease, ownToken } from './check-titles.js';

/** Stores that take two tokens for one, or accept no token as long as the receiver's. */
export const brokenTokens: readonly BrokenStore[] = [
  ...[36, 255, 300].map((length) => ({
    fault: `keeps ${length} characters of a token`,
    make: memory(() => ({ request: (request) => ({ ...request, token: request.token.slice(0, length) }) })),
    caughtBy: [fiftyFree, ownToken],
    says: /tokens? differs? in (?:its|their) last characters? only/,
  })),
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
