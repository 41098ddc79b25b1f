import assert from 'node:assert/strict';
import type { CallbackStore, Claim, ClaimRequest, Lease } from '../core/store.js';

/** One thing that every store must do. */
export interface StorePromise {
  /** A sentence about the store. */
  readonly title: string;
  /** Rejects if the store does not keep the promise. Uses keys of its own, and real time: up to a few seconds. */
  readonly check: (store: CallbackStore<unknown>) => Promise<void>;
}

const longMs = 30_000;
const shortMs = 200;
const fifty = Array.from({ length: 50 });

function newKey(): string {
  return `promise-${crypto.randomUUID()}`;
}

function claimAs(
  store: CallbackStore<unknown>,
  key: string,
  token: string,
  request: Partial<ClaimRequest> = {},
): Promise<Claim<unknown>> {
  return store.claim(key, {
    token,
    fingerprint: `facts of ${token}`,
    leaseMs: longMs,
    retentionMs: longMs,
    ...request,
  });
}

function leaseOf(claim: Claim<unknown>): Lease<unknown> {
  assert.equal(claim.state, 'claimed');
  return claim.lease;
}

async function lease(...args: Parameters<typeof claimAs>): Promise<Lease<unknown>> {
  return leaseOf(await claimAs(...args));
}

/** Claims as `token` until it succeeds: until what stands there has lapsed or ended. */
async function leaseInTime(...args: Parameters<typeof claimAs>): Promise<Lease<unknown>> {
  const giveUpAt = performance.now() + 50 * shortMs;
  for (;;) {
    const claim = await claimAs(...args);
    if (claim.state === 'claimed') return claim.lease;
    assert.ok(performance.now() < giveUpAt, `still ${claim.state} after ${50 * shortMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, shortMs / 10));
  }
}

/**
 * What every store must do, as data, for any test runner. A transactional store, whose `settle` commits, keeps nothing
 * of a late holder; every other store keeps its success. Some claims are left to lapse, up to 15 of them for 30 s: a
 * store that holds a connection for each needs as many.
 *
 *     for (const { title, check } of storePromises) test(title, () => check(store));
 */
export const storePromises: readonly StorePromise[] = [
  {
    title: 'of fifty concurrent callers exactly one is claimed',
    async check(store) {
      const key = newKey();
      const claims = await Promise.all(fifty.map((_, caller) => claimAs(store, key, `caller-${caller}`)));
      assert.equal(claims.filter(({ state }) => state === 'claimed').length, 1);
      assert.equal(claims.filter(({ state }) => state === 'in_progress').length, 49);
    },
  },
  {
    title: 'the same token claims again',
    async check(store) {
      const key = newKey();
      await lease(store, key, 'a');
      const again = await lease(store, key, 'a');
      assert.equal((await claimAs(store, key, 'b')).state, 'in_progress');
      assert.deepEqual(await again.settle(), { overlapped: false });
    },
  },
  {
    title: 'a settled callback is remembered with its fingerprint, for every token',
    async check(store) {
      const key = newKey();
      const held = await lease(store, key, 'a', { fingerprint: '["SUCCESS",15000,"XAF","payout 1"]' });
      assert.deepEqual(await held.settle(), { overlapped: false });
      for (const token of ['a', 'b']) {
        assert.deepEqual(await claimAs(store, key, token), {
          state: 'settled',
          fingerprint: '["SUCCESS",15000,"XAF","payout 1"]',
        });
      }
    },
  },
  {
    title: 'settling twice is settling once',
    async check(store) {
      const key = newKey();
      const held = await lease(store, key, 'a');
      assert.deepEqual(await held.settle(), { overlapped: false });
      assert.deepEqual(await held.settle(), { overlapped: false });
      assert.deepEqual(await claimAs(store, key, 'b'), { state: 'settled', fingerprint: 'facts of a' });
    },
  },
  {
    title: 'a released callback is free at once',
    async check(store) {
      const key = newKey();
      await (await lease(store, key, 'a')).release();
      assert.deepEqual(await (await lease(store, key, 'b')).settle(), { overlapped: false });
    },
  },
  {
    title: 'a lapsed lease is taken over by exactly one of fifty',
    async check(store) {
      const key = newKey();
      await lease(store, key, 'dead', { leaseMs: shortMs });
      for (const giveUpAt = performance.now() + 50 * shortMs; ;) {
        const claims = await Promise.all(fifty.map((_, caller) => claimAs(store, key, `caller-${caller}`)));
        const claimed = claims.filter(({ state }) => state === 'claimed').length;
        if (claimed > 0) {
          assert.equal(claimed, 1);
          return;
        }
        assert.ok(performance.now() < giveUpAt, 'the lease did not lapse');
      }
    },
  },
  {
    title: 'a renewed lease outlasts its length',
    async check(store) {
      const key = newKey();
      const held = await lease(store, key, 'a', { leaseMs: 2 * shortMs });
      for (const until = performance.now() + 4 * shortMs; performance.now() < until;) {
        assert.equal(await held.renew(), true);
        assert.equal((await claimAs(store, key, 'b')).state, 'in_progress');
        await new Promise((resolve) => setTimeout(resolve, shortMs / 10));
      }
      assert.deepEqual(await held.settle(), { overlapped: false });
    },
  },
  {
    title: "a late holder's renewal says no and changes nothing",
    async check(store) {
      const key = newKey();
      const late = await lease(store, key, 'late', { leaseMs: shortMs });
      const next = await leaseInTime(store, key, 'next');
      assert.equal(await late.renew(), false);
      assert.equal((await claimAs(store, key, 'third')).state, 'in_progress');
      assert.equal(await next.renew(), true);
      await next.settle();
      assert.equal(await late.renew(), false);
      assert.equal((await claimAs(store, key, 'third')).state, 'settled');
    },
  },
  {
    title: "a late holder's release changes nothing, before and after the next holder has settled",
    async check(store) {
      const key = newKey();
      const late = await lease(store, key, 'late', { leaseMs: shortMs });
      const next = await leaseInTime(store, key, 'next');
      await late.release();
      assert.equal((await claimAs(store, key, 'third')).state, 'in_progress');
      assert.deepEqual(await next.settle(), { overlapped: false });
      await late.release();
      assert.deepEqual(await claimAs(store, key, 'third'), { state: 'settled', fingerprint: 'facts of next' });
    },
  },
  {
    title: "a holder's own release after it has settled changes nothing",
    async check(store) {
      const key = newKey();
      const held = await lease(store, key, 'a');
      await held.settle();
      await held.release();
      assert.equal((await claimAs(store, key, 'b')).state, 'settled');
    },
  },
  {
    title:
      "a late holder's settling is kept and reported as overlapped, and so is the next holder's; or it commits nothing",
    async check(store) {
      const key = newKey();
      const late = await lease(store, key, 'late', { leaseMs: shortMs });
      const next = await leaseInTime(store, key, 'next');
      if (store.transactional === true) {
        await assert.rejects(late.settle());
        assert.deepEqual(await next.settle(), { overlapped: false });
        assert.deepEqual(await claimAs(store, key, 'third'), { state: 'settled', fingerprint: 'facts of next' });
        return;
      }
      assert.deepEqual(await late.settle(), { overlapped: true });
      assert.equal((await claimAs(store, key, 'third')).state, 'settled');
      await next.release();
      assert.equal((await claimAs(store, key, 'third')).state, 'settled');
      assert.deepEqual(await next.settle(), { overlapped: true });
    },
  },
  {
    title: 'settling after the record was lost still records, and is reported as overlapped; or it commits nothing',
    async check(store) {
      const key = newKey();
      const late = await lease(store, key, 'late', { leaseMs: shortMs });
      await (await leaseInTime(store, key, 'next')).release();
      if (store.transactional === true) {
        await assert.rejects(late.settle());
        await (await lease(store, key, 'third')).release();
        return;
      }
      assert.deepEqual(await late.settle(), { overlapped: true });
      assert.deepEqual(await claimAs(store, key, 'third'), { state: 'settled', fingerprint: 'facts of late' });
    },
  },
  {
    title: 'retention counts from settling, and ends; then the callback may be settled anew',
    async check(store) {
      const key = newKey();
      const retentionMs = 3 * shortMs;
      const held = await lease(store, key, 'a', { retentionMs });
      await new Promise((resolve) => setTimeout(resolve, retentionMs));
      const settlingAt = performance.now();
      await held.settle();
      const next = await leaseInTime(store, key, 'b');
      // A clock of whole milliseconds may be one short.
      assert.ok(performance.now() - settlingAt >= retentionMs - 1, 'it was forgotten early');
      assert.deepEqual(await next.settle(), { overlapped: false });
      assert.deepEqual(await claimAs(store, key, 'c'), { state: 'settled', fingerprint: 'facts of b' });
    },
  },
  {
    title: 'keys stay apart, whatever is in them',
    async check(store) {
      const run = newKey();
      const keys = ['a', 'A', 'a:b', 'a b', '*', '{a}', "'; --", 'é', 'e\u0301', '付款', 'x'.repeat(200)];
      const leases = await Promise.all(keys.map((key) => lease(store, run + key, 'one')));
      for (const [index, held] of leases.entries()) {
        if (index % 2 === 0) await held.settle();
        else await held.release();
      }
      const states = await Promise.all(keys.map(async (key) => (await claimAs(store, run + key, 'two')).state));
      assert.deepEqual(
        states,
        keys.map((_, index) => (index % 2 === 0 ? 'settled' : 'claimed')),
      );
    },
  },
];
