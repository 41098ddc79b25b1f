import assert from 'node:assert/strict';
import type { WrittenCheck } from './store-round.js';

/** A string of 1 500 characters, with some that a database may refuse. */
const externalId = `payout 00001 \0\ud800${'é付😀"\\\''.repeat(216)}`;
/** As the receiver makes it, of 2 000 characters. */
const fingerprint = JSON.stringify(['SUCCESS', 15_000, 'XAF', externalId]);

/** Strings that databases may take for equal (by case, blanks, normal form or collation) or for their own syntax. */
const keyEnds = ['a', 'A', 'a ', 'é', 'e\u0301', '😀', '😃', '付款', 'a:b', 'a b', '*', '{a}', "'; --"];

/** Checks in which no lease and no record ends. */
export const claimChecks: readonly WrittenCheck[] = [
  {
    title: 'of fifty concurrent claims exactly one is granted',
    async check(round) {
      const states = (await round.claimFifty()).map(({ state }) => state);
      assert.deepEqual(
        states.filter((state) => state !== 'in_progress'),
        ['claimed'],
        'of 50 concurrent claims, whose tokens differ in their last characters only, one must be granted, and the others be in progress',
      );
    },
  },
  {
    title: 'a claim that is sent twice with one token is granted both times, and counts as one claim',
    async check(round) {
      await round.hold('a');
      const again = await round.claim('a');
      assert.ok(again.state === 'claimed', 'the holder was refused its own claim');
      for (const end of ['b', 'A']) {
        const { state } = await round.claim(end);
        const difference = `whose token differs in its last character only ("${end}" for "a")`;
        assert.equal(state, 'in_progress', `while a claim is held, a claim ${difference} is ${state}, not in progress`);
      }
      assert.deepEqual(await again.claim.settle(), { overlapped: false });
    },
  },
  {
    title: 'a released callback is granted to exactly one of fifty concurrent claims',
    async check(round) {
      await (await round.hold('a')).release();
      const next = await round.tryHoldOfFifty();
      assert.ok(next, 'a released callback was not free');
      assert.deepEqual(await next.settle(), { overlapped: false });
    },
  },
  {
    title: 'after a release a renewal is refused, and the next claim is granted, and handled with its own facts',
    async check(round) {
      const held = await round.hold('a');
      await held.release();
      assert.equal(await held.renew(), false, 'a released lease was renewed');
      const next = await round.tryHold('b');
      assert.ok(next, 'the renewal of a released lease took the callback');
      await next.settle();
      await round.assertHandled('c', 'b', 'a callback was handled with other facts than those of its claim');
    },
  },
  {
    title: 'the store replies to every claim of a handled callback with the fingerprint that it was handled with',
    async check(round) {
      const held = await round.hold('a');
      assert.deepEqual(await held.settle(), { overlapped: false });
      for (const token of ['a', 'b']) {
        await round.assertHandled(token, 'a', undefined, { fingerprint: 'other facts' });
      }
    },
  },
  {
    title:
      'an externalId of 1 500 characters of all kinds is accepted, and a fingerprint of 2 000 characters comes back unchanged',
    async check(round) {
      await (await round.hold('a', { fingerprint, externalId })).settle();
      const reply = await round.claim('b');
      assert.ok(reply.state === 'handled', `a handled callback is ${reply.state}`);
      assert.equal(reply.fingerprint, fingerprint);
    },
  },
  {
    title: 'a second settle changes nothing and reports no overlap',
    async check(round) {
      const held = await round.hold('a');
      assert.deepEqual(await held.settle(), { overlapped: false });
      assert.deepEqual(await held.settle(), { overlapped: false });
      await round.assertHandled('b', 'a');
    },
  },
  {
    title: 'a release after settling changes nothing',
    async check(round) {
      const held = await round.hold('a');
      await held.settle();
      await held.release();
      assert.equal((await round.claim('b')).state, 'handled', 'the release deleted the handled record');
    },
  },
  {
    title: 'keys of up to 255 characters have separate records, whatever they contain',
    async check(round) {
      const { key } = round;
      // 255 code points, as the receiver counts: more in UTF-16, and more bytes.
      const long = (last: string): string => key + '😀'.repeat(254 - key.length) + last;
      // Events of two types with the id of a transfer, and a transfer whose id begins like the id of an event.
      const kinds = [`other:a:${key}`, `other:b:${key}`, `other:${key}`, `other\u001f${key}`];
      const keys = [key, ...kinds, ...keyEnds.map((end) => `${key} ${end}`), ` ${key} a`, long('1'), long('2')];
      const claims = await Promise.all(
        keys.map(async (each) => {
          const reply = await round.claim(`caller-${keys.indexOf(each)}`, { key: each, fingerprint: each });
          assert.ok(reply.state === 'claimed', `the key ${JSON.stringify(each)} shares a record with another key`);
          return reply.claim;
        }),
      );
      await Promise.all(claims.map((claim) => claim.settle()));
      const replies = await Promise.all(keys.map((each) => round.claim('later', { key: each })));
      assert.deepEqual(
        replies,
        keys.map((fingerprint) => ({ state: 'handled', fingerprint })),
      );
    },
  },
];
