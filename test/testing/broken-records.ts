import { memoryStore, type ClaimRequest, type Claim } from 'transfer-callbacks';
import { memory, type BrokenStore } from './changed-stores.js';
import { facts, lateRenewal, manyRecords, ownRenewal, retention } from './check-titles.js';

/** Rejects a claim whose externalId is one that the column cannot hold. */
const rejects = (isTooMuch: (externalId: string) => boolean, message: string) =>
  memory(() => ({
    request(request: ClaimRequest) {
      if (isTooMuch(request.externalId ?? '')) throw new Error(message);
      return request;
    },
  }));

/** Stores that keep too little of a callback, keep it of another claim, or forget it early. */
export const brokenRecords: readonly BrokenStore[] = [
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
    caughtBy: [ownRenewal, lateRenewal, retention],
    says: /facts of (?:a|late)/,
  },
  {
    fault: 'cuts fingerprints at 1 000 characters',
    make: memory(() => ({
      request: (request) => ({ ...request, fingerprint: request.fingerprint.slice(0, 1_000) }),
    })),
    caughtBy: [facts],
    says: /付/,
  },
  {
    fault: 'loses what is not ASCII in a fingerprint',
    make: memory(() => ({
      request: (request) => ({ ...request, fingerprint: request.fingerprint.replace(/[^\0-\x7f]/gu, '?') }),
    })),
    caughtBy: [facts],
    says: /付/,
  },
  {
    fault: 'rejects an externalId of over 64 characters',
    make: rejects(({ length }) => length > 64, 'value too long for type character varying(64)'),
    caughtBy: [facts, ownRenewal],
    says: /a claim was rejected with .* an externalId of \d{3,} characters: .*value too long/,
  },
  {
    fault: 'rejects an externalId of over 255 characters',
    make: rejects(({ length }) => length > 255, 'value too long for type character varying(255)'),
    caughtBy: [facts],
    says: /a claim was rejected with .* an externalId of \d{4} characters: .*value too long/,
  },
  {
    fault: 'rejects an externalId that contains NUL',
    make: rejects((externalId) => externalId.includes('\0'), 'invalid byte sequence for encoding "UTF8": 0x00'),
    caughtBy: [facts],
    says: /a claim was rejected with .*: invalid byte sequence/,
  },
  {
    fault: 'restarts the retention of a handled record with each claim',
    make: memory(() => {
      const handled = new Map<string, Claim>();
      return {
        granted: (claim, key) => ({ settle: () => claim.settle().finally(() => handled.set(key, claim)) }),
        async claim(reply, key) {
          if (reply.state === 'handled') await handled.get(key)?.settle();
          return reply;
        },
      };
    }),
    caughtBy: [retention],
    says: /a handled record of \d+ ms never ended/,
  },
  {
    fault: 'keeps a hundred records',
    make: () => memoryStore({ maxEntries: 100 }),
    caughtBy: [manyRecords],
    says: /a handled record was forgotten when 150 others were handled/,
  },
];
