import assert from 'node:assert/strict';
import type { Claim } from '../core/store.js';
import { longMs, type Round, type WrittenCheck } from './store-round.js';

/** Longer than a second, to catch a store that cuts leases or retentions at one second. In milliseconds. */
const measuredMs = 1_500;
/** For checks that only need the lease or the record to end. In milliseconds. */
const shortMs = 200;

/** Checks of how long a lease and a handled record last. */
export const periodChecks: readonly WrittenCheck[] = [
  {
    title: 'a lease that is not renewed lasts its length, and then lapses',
    leaseMs: measuredMs,
    async check(round) {
      const period = round.begin('a lease');
      await round.hold('a', { leaseMs: round.leaseMs });
      await round.holdAfterWhole(period);
    },
  },
  {
    title: 'a renewed lease lasts its length from the last renewal, and then lapses',
    leaseMs: measuredMs,
    async check(round) {
      const held = await round.hold('a', { leaseMs: round.leaseMs });
      let renewed = round.begin('a renewed lease');
      for (let renewal = 0; renewal < 2; renewal += 1) {
        await round.pause(round.leaseMs / 3); // As the receiver does.
        renewed = round.begin('a renewed lease');
        assert.equal(await held.renew(), true, 'the renewal of a lease was refused within its length');
      }
      await round.holdAfterWhole(renewed);
    },
  },
  {
    title: 'a claim that is renewed has not `ended` when its first lease is over, nor when another claim has ended',
    leaseMs: shortMs,
    async check(round) {
      const held = await round.hold('a', { leaseMs: round.leaseMs });
      const other = await round.hold('other', { key: `${round.key} other` });
      let hasEnded = false;
      const end = (): void => void (hasEnded = true);
      held.ended?.then(end, () => undefined);
      await other.release();
      // With the longest lease it is held for 20 s: some databases end a transaction that sends nothing for 25 s.
      for (let renewal = 0; renewal < 4; renewal += 1) {
        await round.pause(round.leaseMs / 3);
        assert.equal(await held.renew(), true, 'the renewal of a lease was refused within its length');
      }
      assert.ok(!hasEnded, '`ended` of a claim has resolved while it was held');
    },
  },
  {
    title: 'a lapsed lease is taken over by exactly one of fifty concurrent claims',
    leaseMs: shortMs,
    async check(round) {
      await round.hold('late', { leaseMs: round.leaseMs });
      await round.holdAfter(round.begin('a lease'), () => round.tryHoldOfFifty());
    },
  },
  {
    title: "a late holder's renewal is refused and changes nothing, before and after the next holder settles",
    leaseMs: shortMs,
    async check(round) {
      const { late, next } = await round.takeOver();
      assert.equal(await late.renew(), false, 'a lease was renewed that another delivery had taken over');
      assert.equal((await round.claim('third')).state, 'in_progress', "the late renewal ended the next holder's claim");
      assert.equal(await next.renew(), true, "the late holder's renewal took the lease from the next holder");
      await next.settle();
      assert.equal(await late.renew(), false, 'a lease was renewed whose callback was handled');
      await round.assertHandled('third', 'next');
    },
  },
  {
    title: "a late holder's renewal after the next holder's release is refused, and leaves the callback free",
    leaseMs: shortMs,
    async check(round) {
      const { late, next } = await round.takeOver();
      await next.release();
      assert.equal(await late.renew(), false, 'a lease was renewed that had lapsed and been released by another');
      assert.ok(await round.tryHold('third'), 'the renewal of a lease that was gone took the callback');
    },
  },
  {
    title: "a late holder's release changes nothing, before and after the next holder settles",
    leaseMs: shortMs,
    async check(round) {
      const { late, next } = await round.takeOver();
      await late.release();
      assert.equal((await round.claim('third')).state, 'in_progress', "the late release ended the next holder's claim");
      assert.deepEqual(await next.settle(), { overlapped: false });
      await late.release();
      await round.assertHandled('third', 'next', 'the late release deleted the handled record');
    },
  },
  {
    title: "a late holder's success is kept and reported as overlapped; a transactional store rejects it",
    leaseMs: shortMs,
    async check(round) {
      const { late, next } = await round.takeOver();
      if (round.transactional) {
        await assert.rejects(late.settle());
        assert.deepEqual(await next.settle(), { overlapped: false });
        await round.assertHandled('third', 'next');
        return;
      }
      assert.deepEqual(await late.settle(), { overlapped: true });
      assert.equal((await round.claim('third')).state, 'handled', 'the late success was not recorded');
      await next.release();
      assert.equal((await round.claim('third')).state, 'handled', 'the release deleted the success of another');
      assert.deepEqual(await next.settle(), { overlapped: true });
    },
  },
  {
    title: "a late holder's success is kept even after the next holder's release; a transactional store rejects it",
    leaseMs: shortMs,
    async check(round) {
      const { late, next } = await round.takeOver();
      await next.release();
      await checkLateSuccess(round, late);
    },
  },
  {
    title: 'a handled record outlasts its lease, a late renewal and a later claim',
    leaseMs: measuredMs,
    async check(round) {
      const held = await round.hold('a', { leaseMs: round.leaseMs });
      await held.settle();
      assert.equal(await held.renew(), false, 'a lease was renewed whose callback was handled');
      await round.claim('early', { leaseMs: round.leaseMs, retentionMs: round.leaseMs });
      await round.pause(1.1 * round.leaseMs);
      await round.assertHandled('b', 'a', 'a handled record was forgotten before its retention had passed');
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
      await round.assertHandled('b', 'a', 'a handled record was forgotten when 150 others were handled');
    },
  },
  {
    title: 'retention counts from settling; when it has ended, the callback can be claimed and handled again',
    leaseMs: measuredMs,
    async check(round) {
      const retentionMs = round.leaseMs;
      const maxHeldMs = 2 * retentionMs;
      const held = await round.hold('a', { retentionMs, maxHeldMs });
      await round.pause(retentionMs);
      // A store may keep a record longer by the time that the handler might have taken.
      const record = round.begin('a handled record', retentionMs, maxHeldMs);
      await held.settle();
      assert.deepEqual(await (await round.holdAfterWhole(record)).settle(), { overlapped: false });
      await round.assertHandled('c', 'next');
    },
  },
  {
    title: 'a callback whose retention has ended is granted to exactly one of fifty concurrent claims',
    leaseMs: shortMs,
    async check(round) {
      const held = await round.hold('a', { retentionMs: round.leaseMs, maxHeldMs: 1_000 });
      await held.settle();
      const record = round.begin('a handled record', round.leaseMs, 2_000);
      await round.holdAfter(record, () => round.tryHoldOfFifty());
    },
  },
];

/**
 * Checks that a free callback gets the success of a late holder. A transactional store rejects it, and leaves the
 * callback free.
 */
export async function checkLateSuccess(round: Round, late: Claim<unknown>): Promise<void> {
  if (round.transactional) {
    await assert.rejects(late.settle());
    assert.ok(await round.tryHold('third'), 'a success that was rejected took the callback');
    return;
  }
  assert.deepEqual(await late.settle(), { overlapped: true });
  await round.assertHandled('third', 'late', 'the late success was not recorded');
}
