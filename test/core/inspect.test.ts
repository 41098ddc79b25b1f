import { memoryStore, type CallbackStore, type StoreRecord, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { later, never, receiverOf, storeWith } from './support.js';

describe('inspect', () => {
  test('shows a callback that is free, then claimed here, then settled by the delivery', async () => {
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
      state: 'settled',
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
      confirm: (callback) => (callback.data.id === 'confirming' ? confirmed.promise : callback),
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
    const confirmed = later<TransferCallback>();
    const confirm = vi.fn((callback: TransferCallback) => Promise.resolve(callback));
    confirm.mockReturnValueOnce(confirmed.promise);
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
    confirmed.resolve(callback);
    await copy;
  });

  test('a second claim of a delivery is shown with the name that the delivery has in the log', async () => {
    const store = memoryStore();
    const name = '2026-10-05T02:58:12.113Z/payouts-7.9/41/k3x9q2h1-17';
    await store.claim('a', { token: `${name}.12`, fingerprint: '[]', leaseMs: 60_000, retentionMs: 60_000 });
    expect(await receiverOf({ store }).inspect('a')).toMatchObject({ state: 'claimed', delivery: name });
  });

  test.each(['a\nb', 7])('refuses %j as an id', async (id) => {
    await expect(receiverOf().inspect(id as string)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^Expected `id` to be 1 to 255/) as string,
    });
  });

  test('is refused by its own code for a store without `read`', async () => {
    await expect(receiverOf({ store: storeWith({}) }).inspect('a')).rejects.toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: containing('Expected `store` to have `read`; this store has none.'),
    });
  });

  test.each<[string, () => Promise<StoreRecord>, object]>([
    ['does not reply', never, { code: 'STORE_TIMEOUT' }],
    ['is down', () => Promise.reject(new Error('down')), { message: 'down' }],
    ['replies with nothing', () => Promise.resolve(undefined as never), { code: 'STORE_REPLY_UNEXPECTED' }],
    [
      'replies with a settled record without its fingerprint',
      () => Promise.resolve({ state: 'settled' } as never),
      { code: 'STORE_REPLY_UNEXPECTED' },
    ],
  ])('rejects if the store %s', async (_how, read, error) => {
    const receiver = receiverOf({ storeTimeoutMs: 20, store: { ...storeWith({}), read } });
    await expect(receiver.inspect('a')).rejects.toMatchObject(error);
  });
});

describe('check', () => {
  test('claims its own key, twice with one token, and releases it', async () => {
    const store = memoryStore();
    const claim = vi.spyOn(store, 'claim');
    const receiver = receiverOf({ store, leaseMs: 9_000, retentionMs: 100_000 });
    const checks = [await receiver.check(), await receiver.check()];
    for (const check of checks) {
      expect(check).toEqual({ ok: true, storeMs: expect.any(Number) as number });
      expect(check.ok && check.storeMs).toBeLessThan(performance.now());
    }
    const keys = claim.mock.calls.map(([key]) => key);
    expect(new Set(keys).size).toBe(2);
    const [first, again, other] = claim.mock.calls.map(([, request]) => request);
    expect(again).toEqual(first);
    expect(other?.token).not.toBe(first?.token);
    expect(first).toEqual({
      token: expect.stringMatching(/^\d{4}-.*-1$/) as string,
      fingerprint: '[]',
      leaseMs: 9_000,
      retentionMs: 100_000,
      timeoutMs: 2_000,
      queueMs: 2_000,
    });
    for (const key of keys) {
      expect(key).toMatch(/^check-/);
      expect(await receiver.inspect(key)).toEqual({ state: 'free' });
    }
  });

  test.each<[string, CallbackStore['claim'], object]>([
    ['a store that does not reply', never, { code: 'STORE_TIMEOUT' }],
    [
      'a store to which a new key is taken',
      () => Promise.resolve({ state: 'in_progress' }),
      {
        code: 'STORE_REPLY_UNEXPECTED',
        message: containing('Expected a claim of a new key to be granted, got in_progress.'),
      },
    ],
  ])('does not reject for %s', async (_name, claim, error) => {
    const receiver = receiverOf({ storeTimeoutMs: 20, store: { claim } });
    expect(await receiver.check()).toMatchObject({ ok: false, error });
  });

  test('finds a store that does not know its own claim, and releases that claim', async () => {
    const { claim, read } = memoryStore();
    const replying = vi.fn<CallbackStore['claim']>(async (key, request) => {
      const { state } = await read(key);
      return state === 'free' ? claim(key, request) : { state: 'in_progress' };
    });
    const receiver = receiverOf({ store: { read, claim: replying } });
    expect(await receiver.check()).toMatchObject({
      ok: false,
      error: {
        code: 'STORE_REPLY_UNEXPECTED',
        message: containing('Expected the same claim, sent twice, to be granted, got in_progress.'),
      },
    });
    expect(await receiver.inspect(replying.mock.calls[0]?.[0] ?? '')).toMatchObject({ state: 'free' });
  });

  test('lets the store check itself, logs what it warns of, and does not reject if it does', async () => {
    const warnings: unknown[] = [];
    const logger = { info: () => undefined, warn: (...line: unknown[]) => warnings.push(line), error: () => undefined };
    const check = vi.fn<NonNullable<CallbackStore['check']>>().mockResolvedValueOnce('a risky setting');
    const receiver = receiverOf({ logger, store: { ...memoryStore(), check } });
    expect(await receiver.check()).toMatchObject({ ok: true });
    expect(warnings).toEqual([[{}, 'a risky setting']]);
    const error = new Error('the database lacks something');
    check.mockRejectedValueOnce(error);
    expect(await receiver.check()).toMatchObject({ ok: false, error });
  });

  test.each([
    [true, [[{}, containing('The store has no `check`: a claim was tried, and no commit.')]]],
    [false, []],
  ])(
    'says that no commit was tried if a store without `check` commits the writes of handlers (%s)',
    async (transactional, expected) => {
      const warnings: unknown[] = [];
      const logger = {
        info: () => undefined,
        warn: (...line: unknown[]) => warnings.push(line),
        error: () => undefined,
      };
      const receiver = receiverOf({ logger, store: { ...memoryStore(), transactional } });
      expect(await receiver.check()).toMatchObject({ ok: true });
      expect(warnings).toEqual(expected);
    },
  );
});
