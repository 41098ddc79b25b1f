import type { CallbackStore } from 'transfer-callbacks';
import { describe, expect, test, vi } from 'vitest';
import { later, storeWith } from '../core/support.js';
import { announced, factsOf, reversingReceiver, type Status } from '../support/helpers/reversing.js';
import { makeTransfer, startStoresForFile, type Store } from './refund-support.js';

const { stores } = startStoresForFile();

/** Ends a record as its expiry does. */
async function expire(store: Store, key: string): Promise<void> {
  const record = await store.read(key);
  if (record.state !== 'handled') expect.fail(`The record is ${record.state}.`);
  expect(await store.forget(key, record.fingerprint)).toBe(true);
}

describe.each(stores)('on %s', (_name, makeStore) => {
  test.each<[Status | 'nothing', Status, string]>([
    ['nothing', 'SUCCESS', 'processed'],
    ['SUCCESS', 'SUCCESS', 'duplicate'],
    ['FAILED', 'SUCCESS', 'conflict'],
    ['REVERSED', 'SUCCESS', 'duplicate of REVERSED'],
    ['nothing', 'FAILED', 'processed'],
    ['SUCCESS', 'FAILED', 'conflict'],
    ['FAILED', 'FAILED', 'duplicate'],
    ['REVERSED', 'FAILED', 'duplicate of REVERSED'],
    ['nothing', 'REVERSED', 'processed'],
    ['SUCCESS', 'REVERSED', 'processed'],
    ['FAILED', 'REVERSED', 'duplicate of FAILED'],
    ['REVERSED', 'REVERSED', 'duplicate'],
  ])('after %s a callback of %s is %s', async (first, second, expected) => {
    const { id, ran, receive } = makeTransfer(makeStore());
    if (first !== 'nothing') expect(await receive(first)).toBe('processed');
    expect(await receive(second)).toBe(expected);
    const handled = [...(first === 'nothing' ? [] : [first]), ...(expected === 'processed' ? [second] : [])];
    expect(ran).toEqual(handled.map((status) => `${status} ${id}`));
    // Nothing of it changes when all of it comes again.
    for (const status of handled) expect(await receive(status)).toBe('duplicate');
    expect(ran).toHaveLength(handled.length);
  });

  test('a reversed success is final: neither the reversal nor a failure is handled once more', async () => {
    const { id, ran, receive } = makeTransfer(makeStore());
    for (const status of ['SUCCESS', 'REVERSED'] as const) expect(await receive(status)).toBe('processed');
    expect(await receive('REVERSED')).toBe('duplicate');
    expect(await receive('FAILED')).toBe('duplicate of REVERSED');
    expect(await receive('SUCCESS')).toBe('duplicate');
    expect(ran).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
  });

  test.each([
    ['amount', { amount: 99 }],
    ['currency', { currency: 'XOF' }],
    ['externalId', { externalId: 'another' }],
  ])('a reversal with another %s is a conflict, after a success, a failure and a reversal', async (_field, changes) => {
    for (const first of ['SUCCESS', 'FAILED', 'REVERSED'] as const) {
      const { id, ran, receive } = makeTransfer(makeStore());
      await receive(first);
      expect(await receive('REVERSED', changes)).toBe('conflict');
      expect(ran).toEqual([`${first} ${id}`]);
    }
  });

  test.each<[Status]>([['FAILED'], ['REVERSED']])(
    'a copy of a handled %s that lacks a fact, or has one more, is a duplicate, and one with another fact a conflict',
    async (status) => {
      const bare = { amount: undefined, currency: undefined };
      for (const [first, second] of [[{}, bare] as const, [bare, {}] as const]) {
        const { ran, receive } = makeTransfer(makeStore());
        expect(await receive(status, first)).toBe('processed');
        expect(await receive(status, second)).toBe('duplicate');
        if (first !== bare) expect(await receive(status, { currency: undefined, amount: 99 })).toBe('conflict');
        expect(ran).toHaveLength(1);
      }
    },
  );

  test('a reversal may lack the amount, or write it in another way', async () => {
    for (const changes of [{ amount: undefined, currency: undefined }, { amount: '100.00' }]) {
      const { ran, receive } = makeTransfer(makeStore());
      await receive('SUCCESS');
      expect(await receive('REVERSED', changes)).toBe('processed');
      expect(await receive('REVERSED', changes)).toBe('duplicate');
      expect(ran).toHaveLength(2);
    }
  });

  test.each<[string, Status[]]>([
    ['after a success', ['SUCCESS', 'REVERSED']],
    ['before one', ['REVERSED']],
  ])('once the record of the transfer has expired, nothing is refunded again: reversed %s', async (_when, order) => {
    const { id, store, ran, receive } = makeTransfer(makeStore());
    for (const status of order) expect(await receive(status)).toBe('processed');
    await expire(store, id);
    expect(await receive('REVERSED')).toBe('duplicate');
    expect(await receive('FAILED')).toBe('duplicate of REVERSED');
    expect(ran).toHaveLength(order.length);
  });

  test('nothing is refunded while a reversal runs whose success has expired', async () => {
    const goes = later();
    const { id, store, ran, receive } = makeTransfer(makeStore(), {
      inFlightWaitMs: 50,
      handle: (status) => (status === 'REVERSED' ? goes.promise : undefined),
    });
    await receive('SUCCESS');
    const reversing = receive('REVERSED');
    await vi.waitUntil(async () => (await store.read(id, 'reversal')).state === 'claimed');
    await expire(store, id);
    expect(await receive('REVERSED')).toBe('in_progress');
    expect(await receive('FAILED')).toBe('in_progress');
    goes.resolve();
    expect(await reversing).toBe('processed');
    expect(await receive('FAILED')).toBe('duplicate of REVERSED');
    expect(ran).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
  });

  test('copies of a reversal wait for the one that runs, and one of them runs the handler if it fails', async () => {
    for (const first of [['SUCCESS'], []] as Status[][]) {
      const goes = later();
      let calls = 0;
      const { id, ran, receive } = makeTransfer(makeStore(), {
        async handle(status) {
          if (status !== 'REVERSED' || (calls += 1) > 1) return;
          await goes.promise;
          throw new Error('down');
        },
      });
      for (const status of first) await receive(status);
      const deliveries = [receive('REVERSED')];
      await vi.waitUntil(() => calls === 1);
      deliveries.push(receive('REVERSED'), receive('REVERSED'));
      goes.resolve();
      expect((await Promise.all(deliveries)).sort()).toEqual(['duplicate', 'handler_failed', 'processed']);
      expect(ran.at(-1)).toBe(`REVERSED ${id}`);
      expect(calls).toBe(2);
    }
  });

  test('of failure and reversal only one is handled, whatever comes at the same moment', async () => {
    const handlers = { handle: () => new Promise((resolve) => setTimeout(resolve, Math.random() * 5)) };
    const { store, receiver, ran } = makeTransfer(makeStore(), handlers);
    const other = reversingReceiver(store, handlers);
    const ids = Array.from({ length: 12 }, () => crypto.randomUUID());
    const deliver = async (status: Status, each: string, to: typeof receiver): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      const { outcome } = await to.receive(announced(status, each));
      expect(['processed', 'duplicate', 'conflict']).toContain(outcome);
    };
    await Promise.all(
      ids.flatMap((each) =>
        (['SUCCESS', 'FAILED', 'REVERSED'] as const).flatMap((status) => [
          deliver(status, each, receiver),
          deliver(status, each, other.receiver),
        ]),
      ),
    );
    const all = [...ran, ...other.ran];
    for (const each of ids) {
      const handled = all.filter((one) => one.endsWith(each)).map((one) => one.split(' ')[0]);
      expect(handled.filter((status) => status !== 'SUCCESS')).toHaveLength(1);
      expect(new Set(handled).size).toBe(handled.length);
    }
  });

  test('an id of 255 characters has a record of its reversal, also if it is a long one of an event', async () => {
    for (const longId of ['😀'.repeat(255), `other:${'é'.repeat(249)}`, 'a'.repeat(255), 'a'.repeat(246)]) {
      const { receiver, ran } = makeTransfer(makeStore());
      const receive = async (status: Status) => (await receiver.receive(announced(status, longId))).outcome;
      for (const status of ['SUCCESS', 'REVERSED'] as const) {
        expect([longId, await receive(status)]).toEqual([longId, 'processed']);
        expect(await receive(status)).toBe('duplicate');
      }
      expect(ran).toHaveLength(2);
      expect(await receiver.inspect(longId)).toMatchObject({
        fingerprint: factsOf('SUCCESS', longId),
        reversal: { fingerprint: factsOf('REVERSED', longId) },
      });
    }
  });
});

test.each(stores.slice(0, 2))(
  'on %s a success that is recorded late over a reversal is not reversed again, nor is one that runs meanwhile',
  async (_name, makeStore) => {
    const id = crypto.randomUUID();
    const store = makeStore();
    const pays = later();
    const reverses = later();
    const handle = (status: Status) => (status === 'SUCCESS' ? pays.promise : reverses.promise);
    // The lease of the success is not renewed, as that of a process that is frozen.
    const frozen = storeWith({ granted: () => ({ renew: () => Promise.resolve(true) }) }, store as CallbackStore);
    const times = { storeTimeoutMs: 100, leaseMs: 301, inFlightWaitMs: 0 };
    const first = reversingReceiver(frozen, { handle, ...times });
    const { receiver, ran } = reversingReceiver(store, { handle, inFlightWaitMs: 0 });
    const receive = async (status: Status) => (await receiver.receive(announced(status, id))).outcome;
    const paying = first.receiver.receive(announced('SUCCESS', id));
    await vi.waitUntil(async () => (await store.read(id)).state === 'claimed');
    await vi.waitUntil(async () => (await store.read(id)).state === 'free');
    const reversing = receive('REVERSED');
    await vi.waitUntil(async () => (await store.read(id, 'reversal')).state === 'claimed');
    pays.resolve();
    expect(await paying).toMatchObject({ outcome: 'processed', overlapped: true });
    expect(await receive('REVERSED')).toBe('in_progress');
    expect(await receive('FAILED')).toBe('in_progress');
    reverses.resolve();
    expect(await reversing).toBe('processed');
    expect(await receive('REVERSED')).toBe('duplicate');
    expect(await receive('FAILED')).toBe('duplicate');
    expect([...first.ran, ...ran]).toEqual([`SUCCESS ${id}`, `REVERSED ${id}`]);
    await Promise.all([first.receiver.close(), receiver.close()]);
  },
);
