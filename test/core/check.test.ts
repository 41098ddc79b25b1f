import { memoryStore, type CallbackStore, type StoreRecord } from 'transfer-callbacks';
import { expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { recordingLogger } from '../support/helpers/logger.js';
import { reversingReceiver } from '../support/helpers/reversing.js';
import { never, receiverOf, storeWith } from './support.js';

const unexpected = (sentence: string): object => ({
  code: 'STORE_REPLY_UNEXPECTED',
  message: containing(sentence),
});

test('check claims its own key, twice with one token, releases it, settles it with the shortest retention, and forgets it', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  const receiver = receiverOf({ store, leaseMs: 9_000 });
  for (const check of [await receiver.check(), await receiver.check()]) {
    expect(check).toEqual({ ok: true, storeMs: expect.any(Number) as number });
    expect(check.ok && check.storeMs).toBeLessThan(performance.now());
  }
  const keys = claim.mock.calls.map(([key]) => key);
  expect(new Set(keys).size).toBe(2);
  const [first, again, second, copy, next] = claim.mock.calls.map(([, request]) => request);
  expect(again).toEqual(first);
  expect(first).toEqual({
    token: expect.stringMatching(/^\d{4}-.*-1$/) as string,
    fingerprint: '["SUCCESS",1,"XAF","check"]',
    leaseMs: 9_000,
    retentionMs: 90_001,
    timeoutMs: 2_000,
    queueMs: 2_000,
  });
  expect([second?.token, copy?.token]).toEqual([`${first?.token}.2`, `${first?.token}.3`]);
  expect(next?.token).not.toBe(first?.token);
  for (const key of keys) {
    expect(key).toMatch(/^check-/);
    expect(await receiver.inspect(key)).toEqual({ state: 'free' });
  }
});

test('check does not reject for a store that does not reply', async () => {
  const receiver = receiverOf({ storeTimeoutMs: 20, store: { claim: never } });
  expect(await receiver.check()).toMatchObject({ ok: false, error: { code: 'STORE_TIMEOUT' } });
});

test('check finds a store that does not know its own claim, and releases that claim', async () => {
  const { claim, read } = memoryStore();
  const replying = vi.fn<CallbackStore['claim']>(async (key, request) => {
    const { state } = await read(key);
    return state === 'free' ? claim(key, request) : { state: 'in_progress' };
  });
  const receiver = receiverOf({ store: { read, claim: replying } });
  expect(await receiver.check()).toMatchObject({
    ok: false,
    error: unexpected('Expected the same claim, sent twice, to be claimed, got in_progress.'),
  });
  expect(await receiver.inspect(replying.mock.calls[0]?.[0] ?? '')).toMatchObject({ state: 'free' });
});

const parsed = JSON.parse('["SUCCESS",1,"XAF","check"]') as string;

// As a plugin that parses what looks like JSON does, and a database that does not commit.
test.each<[string, (store: ReturnType<typeof memoryStore>) => Partial<CallbackStore>, object]>([
  [
    'has a claim of a new key',
    () => ({ claim: () => Promise.resolve({ state: 'in_progress' }) }),
    unexpected('Expected a claim of a new key to be claimed, got in_progress.'),
  ],
  [
    'keeps what was released',
    (store) => storeWith({ granted: () => ({ release: () => Promise.resolve() }) }, store),
    unexpected('Expected a claim of a released key to be claimed, got in_progress.'),
  ],
  [
    'cannot settle',
    (store) => storeWith({ granted: () => ({ settle: () => Promise.reject(new Error('read-only')) }) }, store),
    { message: 'read-only' },
  ],
  [
    'settles nothing',
    (store) => storeWith({ granted: () => ({ settle: () => Promise.resolve({ overlapped: false }) }) }, store),
    unexpected('Expected a claim of a handled key to be handled, got in_progress.'),
  ],
  [
    'changes the fingerprint of a copy',
    ({ claim }) => ({
      async claim(key, request) {
        const reply = await claim(key, request);
        return reply.state === 'handled' ? { state: 'handled', fingerprint: reply.fingerprint.toLowerCase() } : reply;
      },
    }),
    unexpected('Expected a claim of a handled key to have the fingerprint that was written.'),
  ],
  [
    'reads a fingerprint that a plugin has parsed',
    ({ read }) => ({
      read: async (key) => ({ ...((await read(key)) as StoreRecord & { state: 'handled' }), fingerprint: parsed }),
    }),
    { code: 'STORE_REPLY_UNEXPECTED' },
  ],
  [
    'reads no record',
    () => ({ read: () => Promise.resolve({ state: 'free' }) }),
    unexpected('Expected its record to be handled, got free.'),
  ],
  [
    'forgets nothing',
    () => ({ forget: () => Promise.resolve(false) }),
    unexpected('Expected `store.forget` of a handled key to resolve with `true`, got `false`.'),
  ],
])('check finds a store that %s', async (_what, change, error) => {
  const store = memoryStore();
  const receiver = receiverOf({ store: { ...store, ...change(store) } });
  expect(await receiver.check()).toMatchObject({ ok: false, error });
});

test('beside onReversed check claims both records, and finds a store that has or forgets only one of them', async () => {
  const store = memoryStore();
  const claim = vi.spyOn(store, 'claim');
  expect(await reversingReceiver(store).receiver.check()).toMatchObject({ ok: true });
  const key = String(claim.mock.lastCall?.[0]);
  expect([await store.read(key), await store.read(key, 'reversal')]).toEqual([{ state: 'free' }, { state: 'free' }]);
  const read: typeof store.read = (each, record) => (record ? Promise.resolve({ state: 'free' }) : store.read(each));
  const forget: typeof store.forget = (each, facts, record) => Promise.resolve(!record && store.forget(each, facts));
  for (const change of [{ read }, { forget }]) {
    const { receiver } = reversingReceiver({ ...store, ...change });
    expect(await receiver.check()).toMatchObject({ ok: false, error: { code: 'STORE_REPLY_UNEXPECTED' } });
  }
});

test('check needs neither `read` nor `forget` nor `check` of the store, and then warns of nothing', async () => {
  const { claim } = memoryStore();
  const logger = recordingLogger();
  expect(await receiverOf({ store: { claim }, logger }).check()).toMatchObject({ ok: true });
  expect(logger.lines).toEqual([]);
});

test('check lets the store check itself first, logs all that it warns of, and does not reject if it does', async () => {
  const logger = recordingLogger();
  const check = vi.fn<NonNullable<CallbackStore['check']>>().mockResolvedValueOnce(['a risky setting', 'another']);
  const store = { ...memoryStore(), check };
  const receiver = receiverOf({ logger, store });
  expect(await receiver.check()).toMatchObject({ ok: true });
  expect(logger.lines).toEqual([
    { level: 'warn', details: {}, message: 'a risky setting' },
    { level: 'warn', details: {}, message: 'another' },
  ]);
  const error = new Error('the database lacks something');
  check.mockRejectedValueOnce(error);
  const claim = vi.spyOn(store, 'claim');
  expect(await receiver.check()).toMatchObject({ ok: false, error });
  expect(claim).not.toHaveBeenCalled();
});
