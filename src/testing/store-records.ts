import assert from 'node:assert/strict';
import type { WrittenCheck } from './store-contract.js';

/** Checks of how long a settled record lasts. */
export const recordChecks: readonly WrittenCheck[] = [
  {
    title: 'a settled record outlasts its lease and a late renewal',
    // Longer than a second, to catch a store that cuts retentions at one second.
    leaseMs: 1_500,
    async check(round) {
      const held = await round.lease('a', { leaseMs: round.leaseMs });
      await held.settle();
      assert.equal(await held.renew(), false, 'a lease was renewed whose callback was settled');
      await round.pause(1.1 * round.leaseMs);
      assert.deepEqual(
        await round.claim('b'),
        { state: 'settled', fingerprint: 'facts of a' },
        'a settled record was forgotten before its retention had passed',
      );
    },
  },
  {
    title: 'retention counts from settling; when it has ended, the callback can be claimed and settled again',
    leaseMs: 500,
    async check(round) {
      const retentionMs = round.leaseMs;
      const held = await round.lease('a', { retentionMs });
      await round.pause(retentionMs);
      const record = round.begin('a settled record', retentionMs);
      await held.settle();
      assert.deepEqual(await (await round.leaseAfterWhole(record)).settle(), { overlapped: false });
      assert.deepEqual(await round.claim('c'), { state: 'settled', fingerprint: 'facts of next' });
    },
  },
  {
    title: 'a callback whose retention has ended is granted to exactly one of fifty concurrent claims',
    leaseMs: 200,
    async check(round) {
      const held = await round.lease('a', { retentionMs: round.leaseMs });
      await held.settle();
      await round.leaseAfter(round.begin('a settled record'), () => round.tryLeaseOfFifty());
    },
  },
];
