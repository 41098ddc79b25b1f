import { memory, type BrokenStore } from './changed-stores.js';
import { outlasts, ownToken, everyToken, recordedTwice, lateSuccess, lostSuccess } from './check-titles.js';

/** Stores that record a success wrongly, or report it wrongly. */
export const brokenSettling: readonly BrokenStore[] = [
  {
    fault: 'replies with the fingerprint of the claim',
    make: memory(() => ({
      claim: (reply, _key, request) =>
        reply.state === 'handled' ? { ...reply, fingerprint: request.fingerprint } : reply,
    })),
    caughtBy: [everyToken],
    says: /other facts/,
  },
  {
    fault: 'forgets a handled record after a second',
    make: memory(() => ({ request: (request) => ({ ...request, retentionMs: Math.min(request.retentionMs, 1_000) }) })),
    caughtBy: [outlasts],
    says: /a handled record was forgotten before its retention had passed/,
  },
  {
    fault: 'drops a success that comes late',
    make: memory(() => ({
      granted: (claim) => ({
        settle: async () => ((await claim.renew()) ? claim.settle() : { overlapped: true }),
      }),
    })),
    caughtBy: [lateSuccess, lostSuccess],
    says: /the late success was not recorded/,
  },
  {
    fault: 'reports no overlap',
    make: memory(() => ({
      granted: (claim) => ({ settle: async () => ({ ...(await claim.settle()), overlapped: false }) }),
    })),
    caughtBy: [lateSuccess, lostSuccess],
    says: /overlapped: true/,
  },
  {
    fault: 'reports an overlap always',
    make: memory(() => ({
      granted: (claim) => ({ settle: async () => ({ ...(await claim.settle()), overlapped: true }) }),
    })),
    caughtBy: [everyToken, recordedTwice, ownToken],
    says: /overlapped: false/,
  },
  {
    fault: 'reports an overlap when it settles again',
    make: memory(() => ({
      granted(claim) {
        let handled = false;
        return {
          async settle() {
            const again = handled;
            handled = true;
            return { overlapped: (await claim.settle()).overlapped || again };
          },
        };
      },
    })),
    caughtBy: [recordedTwice],
    says: /overlapped: false/,
  },
];
