import assert from 'node:assert/strict';
import { checkLateSuccess } from './store-leases.js';
import type { WrittenCheck } from './store-round.js';

/** Checks of `forget`. */
export const forgetChecks: readonly WrittenCheck[] = [
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
      assert.deepEqual(
        await round.claim('b'),
        { state: 'handled', fingerprint: 'facts of a' },
        'a callback has changed that was not to be forgotten',
      );
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
      assert.deepEqual(
        await round.claim('c'),
        { state: 'handled', fingerprint: 'facts of b' },
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
