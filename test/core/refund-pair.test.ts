// The two records that a refund claims: by one claim, or one after the other on a store that undoes no writes.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { toRecordKey } from '../../src/core/callback.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { announced, factsOf, reversingReceiver, storeOfBoth } from '../support/helpers/reversing.js';
import { storeWith } from './support.js';

const id = 'payout';
const down = new Error('down');
const fail = (): Promise<never> => Promise.reject(down);

test('the key of a refund has at most 255 characters, and is the same in every version', async () => {
  expect(await toRecordKey(id, 'reversal')).toBe(`reversed\u001f${id}`);
  const [longest, longer] = ['x'.repeat(246), 'x'.repeat(247)];
  expect(await toRecordKey(longest, 'reversal')).toBe(`reversed\u001f${longest}`);
  const hash = createHash('sha256').update(`reversed\u001f${longer}`).digest('hex');
  expect(await toRecordKey(longer, 'reversal')).toBe(`reversed\u001f${hash}`);
});

describe.each([
  ['makes two claims', memoryStore],
  ['claims both records', storeOfBoth],
])('on a store that %s', (_name, makeStore) => {
  test('of failure and reversal only one is handled, once, beside the record of its transfer', async () => {
    for (const [first, second, outcome, refund] of [
      ['SUCCESS', 'SUCCESS', 'duplicate', 'free'],
      ['SUCCESS', 'FAILED', 'conflict', 'free'],
      ['SUCCESS', 'REVERSED', 'processed', 'handled'],
      ['FAILED', 'SUCCESS', 'conflict', 'handled'],
      ['FAILED', 'FAILED', 'duplicate', 'handled'],
      ['FAILED', 'REVERSED', 'duplicate', 'handled'],
      ['REVERSED', 'SUCCESS', 'duplicate', 'handled'],
      ['REVERSED', 'FAILED', 'duplicate', 'handled'],
      ['REVERSED', 'REVERSED', 'duplicate', 'handled'],
    ] as const) {
      const store = makeStore();
      const { receiver, ran } = reversingReceiver(store);
      expect(await receiver.receive(announced(first, id))).toMatchObject({ outcome: 'processed' });
      expect([first, second, (await receiver.receive(announced(second, id))).outcome]).toEqual([
        first,
        second,
        outcome,
      ]);
      expect(ran).toEqual([first, ...(outcome === 'processed' ? [second] : [])].map((status) => `${status} ${id}`));
      expect(await store.read(id)).toMatchObject({ state: 'handled', fingerprint: factsOf(first, id) });
      expect(await store.read(id, 'reversal')).toMatchObject({ state: refund });
    }
  });

  test('a copy of a refund that lacks a fact, or has one more, is a duplicate', async () => {
    const bare = { amount: undefined, currency: undefined };
    for (const status of ['FAILED', 'REVERSED'] as const) {
      for (const [first, second] of [
        [{}, bare],
        [bare, {}],
      ] as const) {
        const { receiver } = reversingReceiver(makeStore());
        await receiver.receive(announced(status, id, first));
        const copy = await receiver.receive(announced(status, id, second));
        expect(copy).toMatchObject({ outcome: 'duplicate' });
        expect(copy).not.toHaveProperty('recorded');
      }
    }
  });

  test('a reversal that waits behind a failure is handled, although the failure meets the success', async () => {
    const { receiver, ran } = reversingReceiver(makeStore());
    await receiver.receive(announced('SUCCESS', id));
    const outcomes = await Promise.all(
      (['FAILED', 'REVERSED'] as const).map((status) => receiver.receive(announced(status, id))),
    );
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['conflict', 'processed']);
    expect(ran).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
  });

  test('a reversal with other facts than were handled is a conflict', async () => {
    for (const changes of [{ amount: 99 }, { currency: 'XOF' }, { externalId: 'another' }]) {
      for (const first of ['SUCCESS', 'FAILED', 'REVERSED'] as const) {
        const { receiver, ran } = reversingReceiver(makeStore());
        await receiver.receive(announced(first, id));
        expect(await receiver.receive(announced('REVERSED', id, changes))).toMatchObject({ outcome: 'conflict' });
        expect(ran).toHaveLength(1);
      }
    }
  });

  test('once the record of a reversed success has expired, inspect shows the reversal, and nothing is refunded again', async () => {
    const store = makeStore();
    const { receiver, ran } = reversingReceiver(store);
    for (const status of ['SUCCESS', 'REVERSED'] as const) await receiver.receive(announced(status, id));
    await store.forget(id, factsOf('SUCCESS', id));
    expect(await receiver.inspect(id)).toEqual({
      state: 'free',
      reversal: expect.objectContaining({ state: 'handled' }) as object,
    });
    for (const status of ['REVERSED', 'FAILED'] as const) {
      expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome: 'duplicate' });
    }
    expect(ran).toHaveLength(2);
  });

  test('a reversal whose handler fails leaves no record, and the next delivery runs it again', async () => {
    const handle = vi.fn().mockRejectedValueOnce(new Error('down'));
    const { receiver, ran } = reversingReceiver(makeStore(), { handle });
    expect(await receiver.receive(announced('REVERSED', id))).toMatchObject({ outcome: 'handler_failed' });
    expect(await receiver.inspect(id)).toEqual({ state: 'free' });
    expect(await receiver.receive(announced('REVERSED', id))).toMatchObject({ outcome: 'processed' });
    expect(ran).toEqual([`REVERSED ${id}`]);
  });
});

/** A store that fails when one of the two records is claimed. */
function storeWithout(lost: 'reversal' | undefined) {
  const store = memoryStore();
  return storeWith({ claim: (key, request) => (request.record === lost ? fail() : store.claim(key, request)) }, store);
}

test('a failure or a reversal whose own record cannot be claimed runs no handler, and frees the transfer', async () => {
  const { receiver, ran } = reversingReceiver(storeWithout('reversal'));
  for (const status of ['FAILED', 'REVERSED'] as const) {
    expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome: 'store_unavailable' });
  }
  expect(await receiver.receive(announced('SUCCESS', id))).toMatchObject({ outcome: 'processed' });
  expect(ran).toEqual([`SUCCESS ${id}`]);
});

test('a transfer that cannot be claimed leaves no claim of its refund', async () => {
  const store = storeWithout(undefined);
  const { receiver } = reversingReceiver(store);
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'store_unavailable' });
  expect(await store.read(id, 'reversal')).toEqual({ state: 'free' });
});

test('a failure whose second record cannot be handled is processed, and handled in the background', async () => {
  let calls = 0;
  const store = storeWith({
    granted: (claim, { record }) =>
      record === 'reversal' ? { settle: () => ((calls += 1) === 1 ? fail() : claim.settle()) } : {},
  });
  const logger = recordingLogger();
  const { receiver, ran } = reversingReceiver(store, { logger });
  const failed = await receiver.receive(announced('FAILED', id));
  expect(failed).toMatchObject({ outcome: 'processed', overlapped: false, error: down });
  expect(await store.read(id)).toMatchObject({ state: 'handled' });
  expect(await receiver.receive(announced('REVERSED', id))).toMatchObject({ outcome: 'duplicate' });
  await vi.waitUntil(async () => (await store.read(id, 'reversal')).state === 'handled');
  expect(logger.lines.at(-1)?.message).toBe('A handled callback was recorded on retry.');
  expect(ran).toEqual([`FAILED ${id}`]);
});

test('a failure whose transfer cannot be handled settles no refund before it', async () => {
  const handled: string[] = [];
  const store = storeWith({
    granted: (claim, { record = 'transfer' }) => ({
      settle: () => (handled.push(record) === 1 ? fail() : claim.settle()),
    }),
  });
  const { receiver } = reversingReceiver(store);
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'processed' });
  expect(handled).toEqual(['transfer']);
  await vi.waitUntil(() => handled.length === 3);
  expect(handled).toEqual(['transfer', 'transfer', 'reversal']);
});

const lost = () => ({ renew: () => Promise.resolve(false) });

test.each([
  ['loses the lease of its transfer', undefined, lost],
  ['loses the lease of its own record', 'reversal', lost],
  ['learns that the claim of its transfer has ended', undefined, () => ({ ended: Promise.resolve() })],
])('a failure that %s has lost its claim', async (_how, lostRecord, change) => {
  const store = storeWith({ granted: (_claim, { record }) => (record === lostRecord ? change() : {}) });
  const { receiver } = reversingReceiver(store, {
    storeTimeoutMs: 50,
    leaseMs: 151,
    inFlightWaitMs: 0,
    async handle(_status, _id, { signal }) {
      if (!signal.aborted) await once(signal, 'abort');
      throw signal.reason;
    },
  });
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({
    outcome: 'handler_failed',
    error: { code: 'LEASE_LOST' },
  });
  expect(await receiver.inspect(id)).toEqual({ state: 'free' });
});

test('a refund that cannot be released again after its transfer was refused ends its delivery', async () => {
  const store = storeWith({ granted: (_claim, { record }) => (record === 'reversal' ? { release: fail } : {}) });
  const { receiver, ran } = reversingReceiver(store);
  await receiver.receive(announced('SUCCESS', id));
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'store_unavailable', error: down });
  expect(ran).toEqual([`SUCCESS ${id}`]);
});
