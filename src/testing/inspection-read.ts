import assert from 'node:assert/strict';
import { assertBetween, type WrittenInspectionCheck } from './inspection-round.js';
import { longMs } from './store-round.js';

/** Checks of `read`. */
export const readChecks: readonly WrittenInspectionCheck[] = [
  {
    title: 'a callback that is unknown, released, lapsed or expired is read as free',
    leaseMs: 200,
    async check(round) {
      await round.assertFree('an unknown callback');
      await (await round.lease('a')).release();
      await round.assertFree('a released callback');
      await round.lease('late', { leaseMs: round.leaseMs });
      await round.assertFreeAfter('a lease', round.leaseMs);
      const next = await round.leaseAfter(round.begin('a lease'));
      await next.release();
      await round.settle('b', { retentionMs: round.leaseMs });
      await round.assertFreeAfter('a settled record', round.leaseMs);
    },
  },
  {
    title: 'a claimed callback is read as claimed, and the delivery, lease and time that are shown belong to its claim',
    async check(round) {
      for (const token of [round.token('a'), 'another-form']) {
        const claimedAt = Date.now();
        const held = await round.lease('a', { token });
        assert.equal((await round.claim('another')).state, 'in_progress');
        const record = await round.read();
        const elapsedMs = Date.now() - claimedAt;
        assert.ok(record.state === 'claimed', `a claimed callback is ${record.state}`);
        const { delivery = token, by = 'unknown', leaseLeftMs = longMs } = record;
        assert.equal(delivery, token, '`delivery` is not the token of the claim');
        assert.notEqual(by, '', '`by` is empty');
        assert.ok(
          leaseLeftMs <= longMs && leaseLeftMs >= longMs - elapsedMs - 1_000,
          `${elapsedMs} ms after a claim for ${longMs} ms, \`leaseLeftMs\` is ${leaseLeftMs}`,
        );
        assertBetween('since', record.since, claimedAt, claimedAt + elapsedMs);
        await held.release();
      }
    },
  },
  {
    title: 'a settled callback is read with the fingerprint of its claim, and with times that enclose the settling',
    async check(round) {
      const token = round.token('a');
      const fingerprint = '["SUCCESS",15000,"XAF","payout 1 付款 \\\\"\']';
      const claimedAt = Date.now();
      const held = await round.lease('a', { fingerprint });
      const settlingAt = Date.now();
      await held.settle();
      const record = await round.read();
      const readAt = Date.now();
      assert.ok(record.state === 'settled', `a settled callback is ${record.state}`);
      assert.equal(record.fingerprint, fingerprint, '`fingerprint` is not that of the claim');
      assert.equal(record.delivery ?? token, token, '`delivery` is not the token of the claim');
      assertBetween('settledAt', record.settledAt, claimedAt, readAt);
      assertBetween('expiresAt', record.expiresAt, settlingAt + longMs, readAt + longMs);
    },
  },
  {
    title: 'a hundred reads extend no lease, take it from no holder, and block no claim',
    leaseMs: 500,
    async check(round) {
      const [first] = await Promise.all([round.claim('first'), round.readHundred()]);
      assert.ok(first.state === 'claimed', `beside a hundred reads a claim of a free callback is ${first.state}`);
      await round.readHundred();
      assert.equal(await first.lease.renew(), true, 'the renewal of a lease was refused after a hundred reads');
      await first.lease.release();
      const reads = round.readHundred();
      const late = await round.claim('late', { leaseMs: round.leaseMs });
      assert.ok(late.state === 'claimed', `during a hundred reads a claim of a free callback is ${late.state}`);
      const period = round.begin('a lease that is read');
      await reads;
      await round.leaseAfter(period, async () => {
        await round.read();
        return round.tryLease('next');
      });
    },
  },
];
