import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import {
  memoryStore,
  type CallbackStore,
  type ForgottenCallback,
  type Logger,
  type StoreRecord,
  type TransferCallbackReceiver,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { recordingLogger } from '../support/logger.js';
import { later, never, receiverOf } from './support.js';

/** A memory store that knows its records, and can forget them. */
function knowingStore(): Required<Pick<CallbackStore, 'claim' | 'read' | 'forget'>> {
  let memory = memoryStore();
  const records = new Map<string, StoreRecord>();
  return {
    async claim(key, request) {
      const claim = await memory.claim(key, request);
      if (claim.state !== 'claimed') return claim;
      const { token, fingerprint } = request;
      records.set(key, { state: 'claimed', delivery: token });
      const { lease } = claim;
      return {
        ...claim,
        lease: {
          ...lease,
          async settle() {
            const settled = await lease.settle();
            records.set(key, { state: 'settled', fingerprint, delivery: token, settledAt: new Date() });
            return settled;
          },
          async release() {
            await lease.release();
            records.delete(key);
          },
        },
      };
    },
    read: (key) => Promise.resolve(records.get(key) ?? { state: 'free' }),
    forget(key, fingerprint) {
      const record = records.get(key);
      if (record?.state !== 'settled' || record.fingerprint !== fingerprint) return Promise.resolve(false);
      records.delete(key);
      // The memory store itself cannot forget one: there is one key in each of these tests.
      memory = memoryStore();
      return Promise.resolve(true);
    },
  };
}

const invalidId = {
  code: 'INVALID_ARGUMENT',
  message: expect.stringMatching(/^Expected `id` to be 1 to 255/) as string,
};

describe('inspect', () => {
  test('shows a callback that is free, then claimed here, then settled by the delivery', async () => {
    const ends = later();
    const receiver = receiverOf({ store: knowingStore(), onSuccess: () => ends.promise });
    const callback = transferSucceeded();
    const { id, amount, currency, externalId } = callback.data;
    expect(await receiver.inspect(id)).toEqual({ state: 'free' });

    const delivering = receiver.receive(callback);
    await vi.waitUntil(async () => (await receiver.inspect(id)).here !== undefined);
    const waitsSince = performance.now();
    await vi.waitUntil(() => performance.now() - waitsSince >= 10);
    const claimed = await receiver.inspect(id);
    expect(claimed).toEqual({
      state: 'claimed',
      delivery: expect.any(String) as string,
      here: { sinceMs: expect.any(Number) as number },
    });
    expect(claimed.here?.sinceMs).toBeGreaterThanOrEqual(10);
    expect(claimed.here?.sinceMs).toBeLessThan(60_000);

    ends.resolve();
    const { delivery } = await delivering;
    expect(await receiver.inspect(id)).toEqual({
      state: 'settled',
      delivery,
      fingerprint: JSON.stringify(['SUCCESS', amount, currency, externalId]),
      settledAt: expect.any(Date) as Date,
    });
    expect('delivery' in claimed && claimed.delivery).toBe(delivery);
  });

  test('a second claim of a delivery is shown with the name that the delivery has in the log', async () => {
    const store = memoryStore();
    const name = '2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2h1-17';
    await store.claim('a', { token: `${name}.2`, fingerprint: '[]', leaseMs: 60_000, retentionMs: 60_000 });
    expect(await receiverOf({ store }).inspect('a')).toMatchObject({ state: 'claimed', delivery: name });
  });

  test.each([[''], ['x'.repeat(256)], ['a\nb'], [7]])('refuses %j as an id', async (id) => {
    await expect(receiverOf({ store: knowingStore() }).inspect(id as string)).rejects.toMatchObject(invalidId);
  });

  test('is refused by a code of its own for a store without `read`', async () => {
    const { claim } = knowingStore();
    await expect(receiverOf({ store: { claim } }).inspect('a')).rejects.toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: 'Expected `store` to have `read`; this store has none.',
    });
  });

  test('rejects after the deadline of the store, and as the store does', async () => {
    const { claim } = knowingStore();
    const silent = receiverOf({ storeTimeoutMs: 20, store: { claim, read: never } });
    await expect(silent.inspect('a')).rejects.toMatchObject({ code: 'STORE_TIMEOUT' });
    const broken = receiverOf({ store: { claim, read: () => Promise.reject(new Error('down')) } });
    await expect(broken.inspect('a')).rejects.toThrow('down');
  });

  test.each([[undefined], [null], [{ state: 'locked' }], [{ state: 'settled' }]])(
    'rejects %j, which is no record',
    async (record) => {
      const { claim } = knowingStore();
      const read = (): Promise<StoreRecord> => Promise.resolve(record as unknown as StoreRecord);
      await expect(receiverOf({ store: { claim, read } }).inspect('a')).rejects.toMatchObject({
        code: 'STORE_REPLY_UNEXPECTED',
      });
    },
  );
});

describe('check', () => {
  test('claims a key of its own and releases it', async () => {
    const keys: string[] = [];
    const store = knowingStore();
    const receiver = receiverOf({
      store: {
        ...store,
        claim(key, request) {
          keys.push(key);
          return store.claim(key, request);
        },
      },
    });
    const checks = [await receiver.check(), await receiver.check()];
    for (const check of checks) expect(check).toEqual({ ok: true, storeMs: expect.any(Number) as number });
    expect(new Set(keys).size).toBe(2);
    for (const key of keys) {
      expect(key).toMatch(/^check-/);
      expect(await receiver.inspect(key)).toEqual({ state: 'free' });
    }
  });

  test.each<[string, CallbackStore['claim'], object]>([
    ['a store that does not reply', never, { code: 'STORE_TIMEOUT' }],
    ['a store that is down', () => Promise.reject(new Error('down')), { message: 'down' }],
    [
      'a store to which a new key is settled',
      () => Promise.resolve({ state: 'settled', fingerprint: '[]' }),
      { code: 'STORE_REPLY_UNEXPECTED' },
    ],
  ])('does not reject for %s', async (_name, claim, error) => {
    const receiver = receiverOf({ storeTimeoutMs: 20, store: { claim } });
    expect(await receiver.check()).toMatchObject({ ok: false, error });
  });
});

describe('forget', () => {
  /** A callback that was handled, and the fingerprint that `inspect` shows of it. */
  async function settle(
    receiver: TransferCallbackReceiver,
  ): Promise<{ id: string; settled: string; delivery: string }> {
    const callback = transferSucceeded({ id: 'payout' });
    const { delivery } = await receiver.receive(callback);
    const record = await receiver.inspect(callback.data.id);
    if (record.state !== 'settled') expect.fail();
    return { id: callback.data.id, settled: record.fingerprint, delivery };
  }

  const why = { by: 'ana@example.com', reason: 'The ledger was restored from yesterday.' };

  test('lets the next delivery run the handler again, with a line before and after, and tells its channel', async () => {
    const published: unknown[] = [];
    const note = (message: unknown): void => void published.push(message);
    subscribe('transfer-callbacks:forgotten', note);
    onTestFinished(() => void unsubscribe('transfer-callbacks:forgotten', note));
    const logger = recordingLogger();
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: knowingStore(), logger, onSuccess });
    const { id, settled, delivery } = await settle(receiver);

    expect(await receiver.forget(id, { settled, ...why })).toBe(true);

    const facts = { status: 'SUCCESS', amount: 15_000, currency: 'XAF', externalId: expect.any(String) as string };
    const details: ForgottenCallback = { delivery, id, settled: facts as ForgottenCallback['settled'], ...why };
    expect(logger.lines).toEqual([
      { level: 'warn', message: 'A settled transfer callback is about to be forgotten.', details },
      {
        level: 'warn',
        message: 'A settled transfer callback was forgotten; its next delivery runs the handler.',
        details,
      },
    ]);
    expect(published).toEqual([details]);
    expect(await receiver.receive(transferSucceeded({ id }))).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(2);
  });

  test('keeps a record that differs from the one that was seen, a claim, and nothing', async () => {
    const logger = recordingLogger();
    const ends = later();
    const receiver = receiverOf({ store: knowingStore(), logger, onFailed: () => ends.promise });
    const { id } = await settle(receiver);
    expect(await receiver.forget(id, { settled: '["FAILED",1,"XAF","x"]', ...why })).toBe(false);
    expect(await receiver.forget('unknown', { settled: '[]', ...why })).toBe(false);
    expect(await receiver.inspect(id)).toMatchObject({ state: 'settled' });

    const running = receiver.receive(transferFailed({ id: 'running' }));
    await vi.waitUntil(async () => (await receiver.inspect('running')).state === 'claimed');
    expect(await receiver.forget('running', { settled: '[]', ...why })).toBe(false);
    expect(await receiver.inspect('running')).toMatchObject({ state: 'claimed' });
    ends.resolve();
    await running;
    expect(logger.lines).toEqual([]);
  });

  test('says so if the record has changed between its look and its deletion', async () => {
    const logger = recordingLogger();
    const receiver = receiverOf({ store: { ...knowingStore(), forget: () => Promise.resolve(false) }, logger });
    const { id, settled } = await settle(receiver);
    expect(await receiver.forget(id, { settled, ...why })).toBe(false);
    expect(logger.lines.at(-1)?.message).toBe('A settled transfer callback was not forgotten: its record has changed.');
  });

  test('works with a store that has no `read`', async () => {
    const { claim, read, forget } = knowingStore();
    const { id, settled } = await settle(receiverOf({ store: { claim, read, forget } }));
    const logger = recordingLogger();
    expect(await receiverOf({ store: { claim, forget }, logger }).forget(id, { settled, ...why })).toBe(true);
    expect(logger.lines[0]?.details).not.toHaveProperty('delivery');
  });

  test.each<[string, Logger | false, object]>([
    [
      'throws',
      {
        warn: () => {
          throw new Error('disk full');
        },
        error: () => undefined,
      },
      { message: 'disk full' },
    ],
    [
      'rejects',
      { warn: () => Promise.reject(new Error('disk full')), error: () => undefined },
      { message: 'disk full' },
    ],
    ['is missing', false, { code: 'INVALID_ARGUMENT' }],
  ])('forgets nothing if the logger %s', async (_name, logger, error) => {
    const receiver = receiverOf({ store: knowingStore(), logger });
    const { id, settled } = await settle(receiver);
    await expect(receiver.forget(id, { settled, ...why })).rejects.toMatchObject(error);
    expect(await receiver.inspect(id)).toMatchObject({ state: 'settled' });
  });

  test('reports a store that fails: the record may be gone', async () => {
    const logger = recordingLogger();
    const forget = (): Promise<boolean> => Promise.reject(new Error('down'));
    const receiver = receiverOf({ store: { ...knowingStore(), forget }, logger });
    const { id, settled } = await settle(receiver);
    await expect(receiver.forget(id, { settled, ...why })).rejects.toThrow('down');
    expect(logger.lines.at(-1)).toMatchObject({
      level: 'error',
      message: 'A settled transfer callback may have been forgotten: the store failed.',
      details: { id, ...why, err: { message: 'down' } },
    });
  });

  test.each([
    ['settled', { settled: '' }],
    ['by', { by: ' ' }],
    ['reason', { reason: undefined }],
  ])('refuses an empty `%s`', async (name, wrong) => {
    const receiver = receiverOf({ store: knowingStore() });
    const options = { settled: '[]', ...why, ...wrong } as Parameters<typeof receiver.forget>[1];
    await expect(receiver.forget('a', options)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`Expected \`${name}\` to be a text that is not empty`) as string,
    });
  });

  test('is refused for an id that is none, an unknown option, and a store without `forget`', async () => {
    const { claim, read } = knowingStore();
    const receiver = receiverOf({ store: { claim, read } });
    const options = { settled: '[]', ...why };
    await expect(receiver.forget('', options)).rejects.toMatchObject(invalidId);
    const unknown = { ...options, force: true };
    await expect(receiver.forget('a', unknown)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(receiver.forget('a', options)).rejects.toMatchObject({ code: 'STORE_UNSUPPORTED' });
  });
});

describe('close', () => {
  test('resolves with the ids that it left, and logs them', async () => {
    const logger = recordingLogger();
    const onSuccess = vi.fn(never);
    const receiver = receiverOf({ logger, storeTimeoutMs: 20, onSuccess });
    const ids = ['first', 'second'];
    for (const id of ids) void receiver.receive(transferSucceeded({ id }));
    await vi.waitUntil(() => onSuccess.mock.calls.length === 2);
    expect(await receiver.close({ timeoutMs: 0 })).toEqual({ unfinished: 2, ids });
    expect(logger.lines).toEqual([
      {
        level: 'warn',
        message:
          'The receiver has closed, and 2 of its handlers or recordings still run; their leases expire within 15000 ms.',
        details: { ids },
      },
    ]);
  });

  test('logs nothing if it left nothing', async () => {
    const logger = recordingLogger();
    const receiver = receiverOf({ logger });
    await receiver.receive(transferSucceeded());
    expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
    expect(logger.lines).toEqual([]);
  });
});
