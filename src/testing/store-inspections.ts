import assert from 'node:assert/strict';
import { checkLateSuccess } from './store-periods.js';
import { longMs, type Round, type WrittenCheck } from './store-round.js';

/** By how much the clock of a store may differ from this machine's, in milliseconds. */
const clockToleranceMs = 10_000;

/** Checks of `read` and `forget`. */
export const inspectionChecks: readonly WrittenCheck[] = [
  {
    needs: 'read',
    title: 'a callback that is unknown, released, lapsed or expired is read as free',
    leaseMs: 200,
    async check(round) {
      await assertFree(round, 'an unknown callback');
      await (await round.hold('a')).release();
      await assertFree(round, 'a released callback');
      await round.hold('late', { leaseMs: round.leaseMs });
      await assertFreeAfter(round, 'a lease', round.leaseMs);
      const next = await round.holdAfter(round.begin('a lease'));
      await next.release();
      await (await round.hold('b', { retentionMs: round.leaseMs, maxHeldMs: 1_000 })).settle();
      await assertFreeAfter(round, 'a handled record', round.leaseMs);
    },
  },
  {
    needs: 'read',
    title: 'a claimed callback is read as claimed, and the delivery, lease and time that are shown belong to its claim',
    async check(round) {
      for (const token of [round.token('a'), 'another-form']) {
        const claimedAt = Date.now();
        const held = await round.hold('a', { token });
        assert.equal((await round.claim('another')).state, 'in_progress');
        const record = await round.read();
        const elapsedMs = Date.now() - claimedAt;
        assert.ok(record?.state === 'claimed', `a claimed callback is ${record?.state}`);
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
    needs: 'read',
    title: 'a handled callback is read with the fingerprint of its claim, and with times that enclose the settling',
    async check(round) {
      const token = round.token('a');
      const fingerprint = '["SUCCESS",15000,"XAF","payout 1 付款 \\\\"\']';
      const claimedAt = Date.now();
      const held = await round.hold('a', { fingerprint, maxHeldMs: 1_000 });
      const settlingAt = Date.now();
      await held.settle();
      const record = await round.read();
      const readAt = Date.now();
      assert.ok(record?.state === 'handled', `a handled callback is ${record?.state}`);
      assert.equal(record.fingerprint, fingerprint, '`fingerprint` is not that of the claim');
      assert.equal(record.delivery ?? token, token, '`delivery` is not the token of the claim');
      assertBetween('handledAt', record.handledAt, claimedAt, readAt);
      assertBetween('expiresAt', record.expiresAt, settlingAt + longMs, readAt + longMs);
    },
  },
  {
    needs: 'read',
    title: 'a hundred reads extend no lease, take it from no holder, and block no claim',
    leaseMs: 500,
    async check(round) {
      const [first] = await Promise.all([round.claim('first'), readHundred(round)]);
      assert.ok(first.state === 'claimed', `beside a hundred reads a claim of a free callback is ${first.state}`);
      await readHundred(round);
      assert.equal(await first.claim.renew(), true, 'the renewal of a lease was refused after a hundred reads');
      await first.claim.release();
      const reads = readHundred(round);
      const late = await round.claim('late', { leaseMs: round.leaseMs });
      assert.ok(late.state === 'claimed', `during a hundred reads a claim of a free callback is ${late.state}`);
      const period = round.begin('a lease that is read');
      await reads;
      await round.holdAfter(period, async () => {
        await round.read();
        return round.tryHold('next');
      });
    },
  },
  {
    needs: 'forget',
    title: 'forget changes nothing if the callback is unknown, claimed, or handled with another fingerprint',
    async check(round) {
      assert.equal(await round.forget('a'), false, 'an unknown callback was forgotten');
      const held = await round.hold('a');
      assert.equal(await round.forget('a'), false, 'a claim was forgotten');
      assert.equal((await round.claim('b')).state, 'in_progress', 'forgetting a claim ended it');
      assert.equal(await held.renew(), true, 'forgetting a claim took its lease');
      assert.deepEqual(await held.settle(), { overlapped: false }, 'forgetting a claim took its lease');
      for (const fingerprint of ['facts of b', 'facts of ', 'facts of a ', 'facts', '']) {
        const forgotten = await round.forget('a', fingerprint);
        assert.equal(forgotten, false, `with the fingerprint "${fingerprint}" "facts of a" was forgotten`);
      }
      await round.assertHandled('b', 'a', 'a callback has changed that was not to be forgotten');
    },
  },
  {
    needs: 'forget',
    title: 'of fifty concurrent calls of forget exactly one deletes the record, and the callback can be handled again',
    async check(round) {
      await (await round.hold('a')).settle();
      const replies = await Promise.all(Array.from({ length: 50 }, () => round.forget('a')));
      const forgotten = replies.filter(Boolean).length;
      assert.equal(forgotten, 1, `${forgotten} of 50 concurrent calls of \`forget\` resolved with true`);
      await (await round.hold('b')).settle();
      await round.assertHandled(
        'c',
        'b',
        'a callback that was forgotten and handled again does not have the facts of its second claim',
      );
    },
  },
  {
    needs: 'forget',
    title: "a late holder's success is recorded even after a forget; a transactional store rejects it",
    leaseMs: 200,
    async check(round) {
      const { late, next } = await round.takeOver();
      await next.settle();
      assert.equal(await round.forget('next'), true, 'a handled callback was not forgotten');
      await checkLateSuccess(round, late);
    },
  },
];

function readHundred(round: Round): Promise<unknown> {
  return Promise.all(Array.from({ length: 100 }, () => round.read()));
}

async function assertFree(round: Round, when: string): Promise<void> {
  const record = await round.read();
  assert.equal(record?.state, 'free', `${when} is not free but ${record?.state}`);
}

/**
 * Reads until the callback is free, which must be soon after `lengthMs`. A store may add the `maxHeldMs` of a record.
 */
async function assertFreeAfter(round: Round, name: string, lengthMs: number): Promise<void> {
  const giveUpAt = performance.now() + lengthMs + Math.max(2_000, lengthMs / 2);
  for (;;) {
    const askedAt = performance.now();
    const record = await round.read();
    if (record?.state === 'free') return;
    assert.ok(
      askedAt < giveUpAt,
      `${name} of ${lengthMs} ms has ended, and the callback is not free but ${record?.state}`,
    );
    await round.pause(Math.max(5, lengthMs / 50));
  }
}

/** Asserts that a time, if the store shows one, lies between two others, given in milliseconds since 1970. */
function assertBetween(name: string, time: Date | undefined, fromMs: number, toMs: number): void {
  if (time === undefined) return;
  const ms = time.getTime();
  assert.ok(
    ms >= fromMs - clockToleranceMs && ms <= toMs + clockToleranceMs,
    `\`${name}\` is ${shown(ms)}, not between ${shown(fromMs)} and ${shown(toMs)}`,
  );
}

function shown(ms: number): string {
  return Number.isNaN(ms) ? 'no time' : new Date(ms).toISOString();
}
