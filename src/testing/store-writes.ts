import assert from 'node:assert/strict';
import type { Claim } from '../core/store.js';
import type { Round, WrittenCheck } from './store-round.js';

/** How long a claim that could not be settled may block the next one after its release, in milliseconds. */
const freedMs = 2_000;

/** Checks of what a handler writes through `tx`. */
export const writeChecks: readonly WrittenCheck[] = [
  {
    needs: 'write',
    title: 'a write through `tx` is kept once its claim is handled, and `tx` writes nothing after that',
    async check(round) {
      const held = await round.hold('a');
      await round.write(held);
      await held.settle();
      assert.equal(await round.count(), 1, 'a claim was handled, and the write of its handler is not there');
      await round.write(held).catch(() => undefined);
      assert.equal(await round.count(), 1, '`tx` has written after its claim was handled');
    },
  },
  {
    needs: 'write',
    title: 'a write through `tx` is undone when its claim is released',
    async check(round) {
      const held = await round.hold('a');
      await round.write(held);
      await held.release();
      assert.equal(await round.count(), 0, 'a claim was released, and the write of its handler is there');
    },
  },
  {
    needs: 'write',
    title: 'writes that a handler has left running write nothing once its claim is released',
    async check(round) {
      const held = await round.hold('a');
      const left = writeThrice(round, held);
      await held.release();
      await left;
      assert.equal(await round.count(), 0, '`tx` has written after its claim was released');
    },
  },
  {
    needs: 'write',
    title: "a late holder's write is not kept beside that of the next holder",
    leaseMs: 200,
    async check(round) {
      const late = await round.hold('late', { leaseMs: round.leaseMs });
      await round.write(late);
      const next = await round.holdAfter(round.begin('a lease'));
      await round.write(next);
      await late.settle().catch(() => undefined);
      await next.settle();
      await late.settle().catch(() => undefined);
      await late.release().catch(() => undefined);
      const count = await round.count();
      assert.equal(count, 1, `of the writes of a late holder and the next one ${count} were kept`);
    },
  },
  {
    needs: 'fail',
    title: 'a handler that swallows a failed statement is not handled without its write',
    async check(round) {
      const held = await round.hold('a');
      await round.write(held);
      await assert.rejects(round.step('fail', held), '`fail` was to reject');
      await settleOrRepeat(round, held);
    },
  },
  {
    needs: 'rollback',
    title: 'a handler that rolls its transaction back is not handled without its write',
    async check(round) {
      const held = await round.hold('a');
      await round.write(held);
      await round.step('rollback', held).catch(() => undefined);
      await settleOrRepeat(round, held);
    },
  },
  {
    needs: 'lock',
    title: 'a handler that swallows a deadlock is not handled without its write',
    async check(round) {
      for (const { held, key } of await meetDeadlock(round)) await settleOrRepeat(round, held, key);
    },
  },
];

/** Lets two handlers write, and then lock the same two rows in opposite order. Resolves with their claims. */
async function meetDeadlock(round: Round): Promise<readonly { held: Claim<unknown>; key: string }[]> {
  const keys = [`${round.key} 1`, `${round.key} 2`] as const;
  const [one, two] = await Promise.all([round.hold('one', { key: keys[0] }), round.hold('two', { key: keys[1] })]);
  await Promise.all([round.write(one, keys[0]), round.write(two, keys[1])]);
  await Promise.all([round.lock(one, keys[0]), round.lock(two, keys[1])]);
  const locks = await Promise.allSettled([round.lock(one, keys[1]), round.lock(two, keys[0])]);
  assert.ok(
    locks.some(({ status }) => status === 'rejected'),
    'two transactions that called `lock` for the same two rows in opposite order met no deadlock',
  );
  return [
    { held: one, key: keys[0] },
    { held: two, key: keys[1] },
  ];
}

/** Writes three times, one after the other, until a write fails. */
async function writeThrice(round: Round, claim: Claim<unknown>): Promise<void> {
  try {
    for (let writes = 0; writes < 3; writes += 1) await round.write(claim);
  } catch {
    // The claim is over.
  }
}

/**
 * Settles the claim of a handler that has swallowed an error. If the store refuses, the next delivery runs the handler.
 * Either way the callback must be written once in the end.
 */
async function settleOrRepeat(round: Round, held: Claim<unknown>, key = round.key): Promise<void> {
  const isHandled = await held.settle().then(
    () => true,
    () => false,
  );
  if (isHandled) {
    assert.equal(await round.count(key), 1, 'a claim was handled, and the write of its handler is not there');
    return;
  }
  await held.release().catch(() => undefined);
  const refused = round.begin('a claim whose settling was refused', freedMs);
  const next = await round.holdAfter(refused, () => round.tryHold(`next of ${key}`, { key }));
  await round.write(next, key);
  await next.settle();
  const count = await round.count(key);
  assert.equal(
    count,
    1,
    `a claim whose settling was refused was released, and handled by the next holder: ${count} of the two writes were kept`,
  );
}
