import assert from 'node:assert/strict';
import { longMs, type WrittenCheck } from './store-round.js';

/** Checks of how long a handled record lasts. */
export const recordChecks: readonly WrittenCheck[] = [
  {
    title: 'a handled record outlasts its lease, a late renewal and a later claim',
    // Longer than a second, to catch a store that cuts retentions at one second.
    leaseMs: 1_500,
    async check(round) {
      const held = await round.hold('a', { leaseMs: round.leaseMs });
      await held.settle();
      assert.equal(await held.renew(), false, 'a lease was renewed whose callback was handled');
      await round.claim('early', { leaseMs: round.leaseMs, retentionMs: round.leaseMs });
      await round.pause(1.1 * round.leaseMs);
      assert.deepEqual(
        await round.claim('b'),
        { state: 'handled', fingerprint: 'facts of a' },
        'a handled record was forgotten before its retention had passed',
      );
    },
  },
  {
    title: 'a handled record is kept when 150 others are handled',
    async check(round) {
      await (await round.hold('a', { retentionMs: 2 * longMs })).settle();
      const names = Array.from({ length: 15 }, (_, caller) => `caller-${caller}`);
      for (let batch = 0; batch < 10; batch += 1) {
        await Promise.all(
          names.map(async (name) => (await round.hold(name, { key: `${round.key} ${batch} ${name}` })).settle()),
        );
      }
      assert.deepEqual(
        await round.claim('b'),
        { state: 'handled', fingerprint: 'facts of a' },
        'a handled record was forgotten when 150 others were handled',
      );
    },
  },
  {
    title: 'retention counts from settling; when it has ended, the callback can be claimed and handled again',
    leaseMs: 1_500,
    async check(round) {
      const retentionMs = round.leaseMs;
      const maxHeldMs = 2 * retentionMs;
      const held = await round.hold('a', { retentionMs, maxHeldMs });
      await round.pause(retentionMs);
      // A store may keep a record longer by the time that the handler might have taken.
      const record = round.begin('a handled record', retentionMs, maxHeldMs);
      await held.settle();
      assert.deepEqual(await (await round.holdAfterWhole(record)).settle(), { overlapped: false });
      assert.deepEqual(await round.claim('c'), { state: 'handled', fingerprint: 'facts of next' });
    },
  },
  {
    title: 'a callback whose retention has ended is granted to exactly one of fifty concurrent claims',
    leaseMs: 200,
    async check(round) {
      const held = await round.hold('a', { retentionMs: round.leaseMs, maxHeldMs: 1_000 });
      await held.settle();
      const record = round.begin('a handled record', round.leaseMs, 2_000);
      await round.holdAfter(record, () => round.tryHoldOfFifty());
    },
  },
];
