import assert from 'node:assert/strict';
import type { Claim } from '../core/store.js';
import type { Round, WrittenCheck } from './store-round.js';

/** In milliseconds. */
const shortMs = 200;

/** Checks of the record of a refund, beside the record of its transfer. */
export const refundChecks: readonly WrittenCheck[] = [
  {
    needs: 'refunds',
    title: 'the refund of a handled transfer has a record of its own, and settles with its own facts',
    async check(round) {
      await (await round.hold('a')).settle();
      const refund = await round.claim('b', { record: 'reversal' });
      assert.ok(refund.state === 'claimed', `the refund of a handled transfer is ${refund.state}, not free`);
      const { state } = await round.claim('c', { record: 'reversal' });
      assert.equal(state, 'in_progress', `while the claim of a refund is held, another one is ${state}`);
      await refund.claim.settle();
      await assertSettled(round, { transfer: 'a', reversal: 'b' });
    },
  },
  {
    needs: 'refunds',
    title: 'a refund that is released can be claimed again, and settles alone',
    async check(round) {
      await (await round.hold('a', { record: 'reversal' })).release();
      await (await round.hold('b', { record: 'reversal' })).settle();
      await assertSettled(round, { reversal: 'b' });
      await holdSoon(round, 'c', {}, 'the claim of a refund has handled its transfer');
    },
  },
  {
    needs: 'refunds',
    title: 'read and forget tell the record of a refund from the record of its transfer',
    async check(round) {
      await (await round.hold('a')).settle();
      await (await round.hold('b', { record: 'reversal' })).settle();
      for (const [name, record] of [['a'], ['b', 'reversal']] as const) {
        const found = await round.read(record);
        const { fingerprint } = (found ?? { fingerprint: `facts of ${name}` }) as { fingerprint?: string };
        assert.equal(fingerprint, `facts of ${name}`, '`read` shows another record');
        const other = await round.forget(name, `facts of ${name}`, record === undefined ? 'reversal' : undefined);
        assert.notEqual(other, true, '`forget` has ended the other record');
      }
      if ((await round.forget('b', 'facts of b', 'reversal')) === undefined) return;
      await assertSettled(round, { transfer: 'a' });
      await holdSoon(round, 'd', { record: 'reversal' }, 'a refund was not forgotten');
    },
  },
  {
    needs: 'claimsBoth',
    title:
      'of fifty concurrent claims of both records exactly one is granted, also if it is sent twice, and holds both',
    async check(round) {
      const replies = await round.claimFifty({ record: 'both' });
      const granted = replies.flatMap(({ state }, caller) => (state === 'claimed' ? [`caller-${caller}`] : []));
      assert.equal(granted.length, 1, `${granted.length} of 50 concurrent claims of both records were granted`);
      const [name = ''] = granted;
      const again = await round.claim(name, { record: 'both' });
      assert.ok(again.state === 'claimed', 'the holder was refused its own claim of both records');
      for (const record of [undefined, 'reversal', 'both'] as const) {
        const { state } = await round.claim('next', { ...(record && { record }) });
        const what = `while both records are held, a claim of ${record ?? 'the transfer'}`;
        assert.equal(state, 'in_progress', `${what} is ${state}, not in progress`);
      }
      assert.equal(await again.claim.renew(), true, 'the claim of both records was not renewed');
      assert.deepEqual(await again.claim.settle(), { overlapped: false });
      assert.deepEqual(await again.claim.settle(), { overlapped: false });
      await assertSettled(round, { transfer: name, reversal: name });
    },
  },
  {
    needs: 'claimsBoth',
    title: 'a claim of both records is refused if the transfer is handled, and leaves the refund free',
    async check(round) {
      await (await round.hold('a')).settle();
      await round.assertHandled('b', 'a', undefined, { record: 'both' });
      await (await holdSoon(round, 'c', { record: 'reversal' })).settle();
      const message = 'where both records are handled, the reply to a claim of both has the facts of the refund';
      await round.assertHandled('d', 'c', message, { record: 'both' });
    },
  },
  {
    needs: 'claimsBoth',
    title: 'a claim of both records is refused if the refund is handled, and leaves the transfer free',
    async check(round) {
      await (await round.hold('a', { record: 'reversal' })).settle();
      await round.assertHandled('b', 'a', undefined, { record: 'both' });
      await (await holdSoon(round, 'c')).settle();
      await assertSettled(round, { transfer: 'c', reversal: 'a' });
    },
  },
  {
    needs: 'claimsBoth',
    title: 'while a transfer is held, neither its refund nor both are granted, and the other way round',
    async check(round) {
      const transfer = await round.hold('a');
      for (const record of ['reversal', 'both'] as const) {
        const { state } = await round.claim('b', { record });
        assert.equal(state, 'in_progress', `while the transfer is held, a claim of ${record} is ${state}`);
      }
      await transfer.release();
      const refund = await holdSoon(round, 'c', { record: 'reversal' });
      for (const record of ['reversal', 'both'] as const) {
        const { state } = await round.claim('d', { record });
        assert.equal(state, 'in_progress', `while the refund is held, a claim of ${record} is ${state}`);
      }
      await refund.release();
      await (await holdSoon(round, 'e', { record: 'both' })).release();
      for (const record of [undefined, 'reversal'] as const) {
        const next = await holdSoon(round, `after-${record}`, { record });
        await next.release();
      }
    },
  },
  {
    needs: 'claimsBoth',
    title: 'a claim of both records that lapses frees both',
    leaseMs: shortMs,
    async check(round) {
      await round.hold('late', { record: 'both', leaseMs: round.leaseMs });
      const both = await round.holdAfter(round.begin('a lease'), () => round.tryHold('next', { record: 'both' }));
      await both.settle();
      await assertSettled(round, { transfer: 'next', reversal: 'next' });
    },
  },
  {
    needs: 'claimsBoth',
    title: 'a claim of both records is granted once both records have ended',
    leaseMs: shortMs,
    async check(round) {
      const retentionMs = round.leaseMs;
      await (await round.hold('a', { record: 'both', retentionMs, maxHeldMs: 500 })).settle();
      const ended = round.begin('a handled record', retentionMs, 2_000);
      const both = await round.holdAfter(ended, () => round.tryHold('next', { record: 'both' }));
      await both.settle();
      await assertSettled(round, { transfer: 'next', reversal: 'next' });
    },
  },
];

/** Claims what is free. It may be in progress while a claim that was refused before releases its locks. */
async function holdSoon(
  round: Round,
  name: string,
  changes: Parameters<Round['claim']>[1] = {},
  message = 'a free callback was not granted',
): Promise<Claim<unknown>> {
  for (const giveUpAt = performance.now() + 2_000; ;) {
    const reply = await round.claim(name, changes);
    if (reply.state === 'claimed') return reply.claim;
    assert.ok(reply.state === 'in_progress' && performance.now() < giveUpAt, `${message}: it is ${reply.state}`);
    await round.pause(20);
  }
}

/** Asserts by whom each record was handled. */
async function assertSettled(round: Round, by: { transfer?: string; reversal?: string }): Promise<void> {
  for (const [what, name] of Object.entries(by) as ['transfer' | 'reversal', string][]) {
    const message = `the record of the ${what} does not have the facts that it was handled with`;
    await round.assertHandled(`later-${what}`, name, message, what === 'reversal' ? { record: what } : {});
  }
}
