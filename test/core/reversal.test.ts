import { beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { claimCallback } from '../../src/core/claim/call-store.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { announced, factsOf, reversingReceiver, storeOfBoth, type Status } from '../support/helpers/reversing.js';
import { fakeClock, later, receiverOf, storeWith, turn } from './support.js';

const id = 'payout';

test('the documented service asks the store for one key only, and never reads it', async () => {
  const store = memoryStore();
  const read = vi.spyOn(store, 'read');
  const claim = vi.spyOn(store, 'claim');
  const receiver = receiverOf({ store });
  await receiver.receive(transferSucceeded({ id: 'a' }));
  await receiver.receive(transferFailed({ id: 'b' }));
  expect(read).not.toHaveBeenCalled();
  expect(claim.mock.calls.map(([key]) => key)).toEqual(['a', 'b']);
});

test('what comes after another final status is a duplicate with the one that was handled, and has a line of its own', async () => {
  const logger = { ...recordingLogger(), info: vi.fn() };
  const { receiver } = reversingReceiver(memoryStore(), { logger });
  await receiver.receive(announced('FAILED', id));
  expect(await receiver.receive(announced('REVERSED', id))).toMatchObject({
    outcome: 'duplicate',
    event: 'transfer.reversed',
    status: 'REVERSED',
    recorded: { status: 'FAILED', amount: 100, currency: 'XAF', externalId: `payout-${id}` },
  });
  expect(await receiver.receive(announced('FAILED', id))).not.toHaveProperty('handled');
  expect(logger.info.mock.calls).toEqual([
    [expect.anything(), 'A callback was handled.'],
    [
      expect.objectContaining({
        id,
        status: 'REVERSED',
        recorded: expect.objectContaining({ status: 'FAILED' }) as object,
      }),
      'A callback came after another final status of its transfer had been handled; no handler runs for it.',
    ],
    [expect.anything(), 'A callback had been handled before.'],
  ]);
  expect(logger.lines).toEqual([]);
});

test('a refund holds both records: it renews while it holds both, and reports if one of them was handled by another', async () => {
  const store = memoryStore();
  const times = { leaseMs: 60_000, retentionMs: 86_400_000, timeoutMs: 1_000, queueMs: 1_000, maxHeldMs: 60_000 };
  const request = { ...times, token: 'a', fingerprint: 'a failure', event: 'transfer.failed', externalId: id };
  const reply = await claimCallback(store, { key: id, id }, { ...request, record: 'both' });
  if (reply.state !== 'claimed') expect.fail(reply.state);
  expect(await reply.claim.renew()).toBe(true);
  const sameToken = await store.claim(id, { ...request, record: 'reversal' });
  if (sameToken.state === 'claimed') await sameToken.claim.release();
  const other = await store.claim(id, { ...request, token: 'b', record: 'reversal' });
  expect(await reply.claim.renew()).toBe(false);
  if (other.state === 'claimed') await other.claim.settle();
  expect(await reply.claim.settle()).toEqual({ overlapped: true });
});

/** A receiver whose service tells this status of every transfer. */
function confirming(told: { status: Status; changes?: object }) {
  return reversingReceiver(memoryStore(), { confirm: () => announced(told.status, id, told.changes) });
}

test.each<[Status]>([['SUCCESS'], ['FAILED'], ['REVERSED']])(
  'a callback of %s is handled as the reversal that confirm has read, once',
  async (status) => {
    const { receiver, ran } = confirming({ status: 'REVERSED' });
    for (const outcome of ['processed', 'duplicate']) {
      expect(await receiver.receive(announced(status, id))).toMatchObject({
        outcome,
        event: 'transfer.reversed',
        status: 'REVERSED',
      });
    }
    expect(ran).toEqual([`REVERSED ${id}`]);
  },
);

const bare = { amount: undefined, currency: undefined };

test.each<[Status]>([['FAILED'], ['REVERSED']])(
  'a callback of %s without its amount is confirmed, and handled and recorded with the facts that confirm has read',
  async (status) => {
    const amounts: unknown[] = [];
    const store = memoryStore();
    const take = ({ data }: { data: { amount?: unknown } }) => amounts.push(data.amount);
    const confirm = () => announced(status, id);
    const { receiver } = reversingReceiver(store, { confirm, onFailed: take, onReversed: take });
    expect(await receiver.receive(announced(status, id, bare))).toMatchObject({ outcome: 'processed', status });
    expect(amounts).toEqual([100]);
    expect(await store.read(id)).toMatchObject({ state: 'handled', fingerprint: factsOf(status, id) });
    expect(await receiver.receive(announced(status, id, bare))).toMatchObject({ outcome: 'duplicate' });
    expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome: 'duplicate' });
  },
);

test('a reversal whose callback was lost is handled with the next copy of the success', async () => {
  const told: { status: Status } = { status: 'SUCCESS' };
  const { receiver, ran } = confirming(told);
  expect(await receiver.receive(announced('SUCCESS', id))).toMatchObject({ outcome: 'processed' });
  told.status = 'REVERSED';
  expect(await receiver.receive(announced('SUCCESS', id))).toMatchObject({
    outcome: 'processed',
    status: 'REVERSED',
  });
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'duplicate', status: 'REVERSED' });
  expect(ran).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
});

test.each<[string, Status, told: { status: Status; changes?: object }, sent?: object]>([
  ['a success whose amount the query lacks', 'SUCCESS', { status: 'SUCCESS', changes: bare }, { amount: 999_999 }],
  ['a failure whose amount the query lacks', 'FAILED', { status: 'FAILED', changes: bare }],
  ['a failure with another amount', 'FAILED', { status: 'FAILED' }, { currency: undefined, amount: 99 }],
  ['a reversal of a transfer that has succeeded', 'REVERSED', { status: 'SUCCESS' }],
  ['a failure of a transfer that has succeeded', 'FAILED', { status: 'SUCCESS' }],
  ['a success that was reversed with another amount', 'SUCCESS', { status: 'REVERSED', changes: { amount: 99 } }],
  ['a success where another transfer was reversed', 'SUCCESS', { status: 'REVERSED', changes: { id: 'another' } }],
  ['a reversal with a field that is none', 'SUCCESS', { status: 'REVERSED', changes: { amount: {} } }],
])('%s is unconfirmed, and no handler runs', async (_what, status, told, sent = {}) => {
  const { receiver, ran } = confirming(told);
  expect(await receiver.receive(announced(status, id, sent))).toMatchObject({ outcome: 'unconfirmed' });
  expect(ran).toEqual([]);
});

describe('waiting', () => {
  beforeEach(fakeClock);

  /** A success that runs until it is told to end, and reversals that wait for it. */
  async function setUp() {
    const pays = later();
    const reverses = later();
    const store = memoryStore();
    const { receiver, ran } = reversingReceiver(store, {
      leaseMs: 29_000,
      handle: (status) => (status === 'SUCCESS' ? pays.promise : reverses.promise),
    });
    const receive = (status: Status) => receiver.receive(announced(status, id));
    const paying = receive('SUCCESS');
    await turn();
    return { store, receiver, ran, receive, paying, pays, reverses };
  }

  test('both waits of a reversal together take at most inFlightWaitMs', async () => {
    const { receive, paying, pays, reverses, ran } = await setUp();
    const [first, second] = [receive('REVERSED'), receive('REVERSED')];
    await vi.advanceTimersByTimeAsync(6_000);
    pays.resolve();
    await paying;
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await second).toMatchObject({ outcome: 'in_progress', waitedMs: 10_000, durationMs: 10_000 });
    reverses.resolve();
    expect(await first).toMatchObject({ outcome: 'processed' });
    expect(ran).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
  });

  test('a reversal that has waited before ends earlier than one that came to the line before it', async () => {
    const { store, receive, paying, pays } = await setUp();
    const early = receive('REVERSED');
    await vi.advanceTimersByTimeAsync(1_000);
    // Another process runs the reversal.
    const request = { token: 'another', fingerprint: '[]', leaseMs: 60_000, retentionMs: 100_000 };
    await store.claim(id, { ...request, record: 'reversal' });
    const [asking, waiting] = [receive('REVERSED'), receive('REVERSED')];
    await vi.advanceTimersByTimeAsync(5_000);
    pays.resolve();
    await paying;
    await vi.advanceTimersByTimeAsync(4_000);
    expect(await early).toMatchObject({ outcome: 'in_progress', durationMs: 10_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    for (const each of [asking, waiting])
      expect(await each).toMatchObject({ outcome: 'in_progress', durationMs: 10_000 });
  });

  test('a failure waits for a success that fails, and is handled then', async () => {
    const { receive, paying, pays, reverses, ran } = await setUp();
    const failing = receive('FAILED');
    pays.reject(new Error('down'));
    reverses.resolve();
    expect(await paying).toMatchObject({ outcome: 'handler_failed' });
    await vi.advanceTimersByTimeAsync(50);
    expect(await failing).toMatchObject({ outcome: 'processed' });
    expect(ran).toEqual([`FAILED ${id}`]);
  });

  test('a reversal that is late is recorded when its handler ends, and until then nothing else is refunded', async () => {
    const goes = later();
    const { receiver, ran } = reversingReceiver(memoryStore(), {
      handlerTimeoutMs: 1_000,
      inFlightWaitMs: 0,
      handle: () => goes.promise,
    });
    const reversing = receiver.receive(announced('REVERSED', id));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await reversing).toMatchObject({ outcome: 'timed_out' });
    expect(await receiver.inspect(id)).toMatchObject({
      state: 'claimed',
      here: { sinceMs: 1_000 },
      reversal: { state: 'claimed' },
    });
    const failing = receiver.receive(announced('FAILED', id));
    await vi.advanceTimersByTimeAsync(1);
    expect(await failing).toMatchObject({ outcome: 'in_progress' });
    goes.resolve();
    await turn();
    expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'duplicate' });
    expect(await receiver.inspect(id)).toMatchObject({ state: 'handled', reversal: { state: 'handled' } });
    expect(ran).toEqual([`REVERSED ${id}`]);
  });

  test('the claim of a reversal after a success may queue for the rest of the wait, or as long as one call takes', async () => {
    const store = storeOfBoth();
    const asked: [record: string | undefined, queueMs: number | undefined][] = [];
    const slow: typeof store = {
      ...store,
      async claim(key, request) {
        asked.push([request.record, request.queueMs]);
        await new Promise((resolve) => setTimeout(resolve, 400));
        return store.claim(key, request);
      },
    };
    const receive = async (status: Status, inFlightWaitMs: number, each: string) => {
      void reversingReceiver(slow, { inFlightWaitMs }).receiver.receive(announced(status, each));
      await vi.advanceTimersByTimeAsync(2_000);
    };
    for (const [each, waitMs] of [['a', 3_000] as const, ['b', 0] as const]) {
      await receive('SUCCESS', waitMs, each);
      await receive('REVERSED', waitMs, each);
    }
    const transfer = undefined;
    expect(asked).toEqual([
      ...[
        [transfer, 3_000],
        ['both', 3_000],
        ['reversal', 2_600],
      ],
      ...[
        [transfer, 2_000],
        ['both', 2_000],
        ['reversal', 2_000],
      ],
    ]);
  });
});

test('a reversal asks the store while the success is still being recorded, and is handled once it is', async () => {
  const asked: unknown[] = [];
  let isDown = true;
  const store = storeWith({
    granted(claim, { record }) {
      asked.push(record);
      return { settle: () => (isDown ? Promise.reject(new Error('down')) : claim.settle()) };
    },
  });
  const { receiver, ran } = reversingReceiver(store);
  expect(await receiver.receive(announced('SUCCESS', id))).toMatchObject({ error: expect.any(Error) as Error });
  const reversal = receiver.receive(announced('REVERSED', id));
  await vi.waitFor(() => {
    expect(asked).toContain('reversal');
  });
  isDown = false;
  expect(await reversal).toMatchObject({ outcome: 'processed', status: 'REVERSED' });
  expect(ran).toEqual(['SUCCESS payout', 'REVERSED payout']);
});
