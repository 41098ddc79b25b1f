import { memoryStore, type StoreRecord, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { toTransferKey } from '../../src/core/callback.js';
import { containing } from '../support/helpers/containing.js';
import { reversingReceiver } from '../support/helpers/reversing.js';
import { later, never, receiverOf, storeWith } from './support.js';

test('inspect shows a callback that is free, then claimed here, then handled by the delivery', async () => {
  const ends = later();
  const receiver = receiverOf({ onSuccess: () => ends.promise });
  const callback = transferSucceeded();
  const { id, amount, currency, externalId } = callback.data;
  expect(await receiver.inspect(id)).toEqual({ state: 'free' });

  const delivering = receiver.receive(callback);
  await vi.waitUntil(async () => (await receiver.inspect(id)).here !== undefined);
  const waitsSince = performance.now();
  await vi.waitUntil(() => performance.now() - waitsSince >= 10);
  const claimed = await receiver.inspect(id);
  expect(claimed.here?.sinceMs).toBeGreaterThanOrEqual(10);
  expect(claimed.here?.sinceMs).toBeLessThan(60_000);

  ends.resolve();
  const { delivery } = await delivering;
  expect(claimed).toMatchObject({ state: 'claimed', delivery });
  expect(await receiver.inspect(id)).toEqual({
    state: 'handled',
    fingerprint: JSON.stringify(['SUCCESS', amount, currency, externalId]),
    expiresAt: expect.any(Date) as Date,
  });
});

test('a handler is shown for its own callback only, from its start to its end', async () => {
  const ends = later();
  const confirmed = later<TransferCallback>();
  const store = storeWith({
    granted: () => ({ settle: () => Promise.reject(new Error('down')), release: never }),
  });
  const receiver = receiverOf({
    store: { ...store, read: () => Promise.resolve({ state: 'free' }) },
    storeTimeoutMs: 200,
    confirm: (callback) => (callback.data.id === 'confirming' ? confirmed.promise : true),
    onSuccess: ({ data }) => (data.id === 'running' ? ends.promise : undefined),
    onFailed: () => Promise.reject(new Error('no')),
  });
  const here = async (id: string): Promise<boolean> => (await receiver.inspect(id)).here !== undefined;
  await receiver.receive(transferSucceeded({ id: 'recording' }));
  void receiver.receive(transferFailed({ id: 'releasing' }));
  void receiver.receive(transferSucceeded({ id: 'confirming' }));
  void receiver.receive(transferSucceeded({ id: 'running' }));
  await vi.waitUntil(() => here('running'));
  for (const id of ['recording', 'releasing', 'confirming', 'another']) expect(await here(id)).toBe(false);
  ends.resolve();
  await vi.waitUntil(async () => !(await here('running')));
  await receiver.close({ timeoutMs: 0 });
});

test('a handler that has lost its lease is shown until it ends, also beside a copy that is being confirmed', async () => {
  const confirmed = later<true>();
  const confirm = vi.fn(() => Promise.resolve(true)).mockReturnValueOnce(confirmed.promise);
  const ends = later();
  let signal: AbortSignal | undefined;
  const store = storeWith({ transactional: true, granted: () => ({ renew: () => Promise.resolve(false) }) });
  const receiver = receiverOf({
    store: { ...store, read: () => Promise.resolve({ state: 'free' }) },
    confirm,
    storeTimeoutMs: 10,
    leaseMs: 60,
    onSuccess(_callback, context) {
      ({ signal } = context);
      return ends.promise;
    },
  });
  const callback = transferSucceeded();
  const copy = receiver.receive(callback);
  const delivery = receiver.receive(callback);
  await vi.waitUntil(() => signal?.aborted);
  expect(await receiver.inspect(callback.data.id)).toMatchObject({ here: {} });
  ends.resolve();
  await delivery;
  expect((await receiver.inspect(callback.data.id)).here).toBeUndefined();
  confirmed.resolve(true);
  await copy;
});

test('a second claim of a delivery is shown with the name that the delivery has in the log', async () => {
  const store = memoryStore();
  const name = '2026-10-05T02:58:12.113Z/payouts-7.9/41/k3x9q2h1-17';
  await store.claim('a', { token: `${name}.12`, fingerprint: '[]', leaseMs: 60_000, retentionMs: 60_000 });
  expect(await receiverOf({ store }).inspect('a')).toMatchObject({ state: 'claimed', delivery: name });
});

test.each(['a\nb', 7])('inspect refuses %j as an id', async (id) => {
  await expect(receiverOf().inspect(id as string)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/^Expected `id` to be 1 to 255/) as string,
  });
});

test('inspect reads the records that the id may have, and no other', async () => {
  const store = memoryStore();
  const read = vi.spyOn(store, 'read');
  await receiverOf({ store }).inspect('a');
  const key = toTransferKey('other:a');
  for (const id of ['other:a', key]) await receiverOf({ store }).inspect(id);
  await reversingReceiver(store).receiver.inspect('a');
  expect(read.mock.calls).toEqual([
    ['a', undefined],
    [key, undefined],
    ['other:a', undefined],
    [key, undefined],
    ['a', undefined],
    ['a', 'reversal'],
  ]);
});

test('inspect is refused by its own code for a store without `read`', async () => {
  await expect(receiverOf({ store: { claim: memoryStore().claim } }).inspect('a')).rejects.toMatchObject({
    code: 'STORE_UNSUPPORTED',
    message: containing('Expected `store` to have `read`; this store has none.'),
  });
});

test.each<[string, () => Promise<StoreRecord>, object]>([
  ['does not reply', never, { code: 'STORE_TIMEOUT' }],
  ['is down', () => Promise.reject(new Error('down')), { message: 'down' }],
  [
    'replies with nothing',
    () => Promise.resolve(undefined as never),
    { code: 'STORE_REPLY_UNEXPECTED', message: containing(', got undefined.') },
  ],
  [
    'replies with a handled record without its fingerprint',
    () => Promise.resolve({ state: 'handled' } as never),
    { code: 'STORE_REPLY_UNEXPECTED', message: containing(', got the state "handled".') },
  ],
])('inspect rejects if the store %s', async (_how, read, error) => {
  const receiver = receiverOf({ storeTimeoutMs: 20, store: { ...memoryStore(), read } });
  await expect(receiver.inspect('a')).rejects.toMatchObject(error);
});
