import { expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore, type CallbackStore } from 'transfer-callbacks';
import { storeContract } from 'transfer-callbacks/testing';
import { fakeClock } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { claimFree } from './support.js';

// The contracts wait for real leases, of up to 2.5 s.
vi.setConfig({ testTimeout: 60_000 });

const request = { token: 'a', fingerprint: 'f', leaseMs: 1_000, retentionMs: 10_000 };

const claim = (store: CallbackStore, key: string, changes: Partial<typeof request> = {}) =>
  claimFree(store, { ...request, ...changes }, key);

async function settle(store: CallbackStore, key: string, changes: Partial<typeof request> = {}): Promise<void> {
  await (await claim(store, key, changes)).settle();
}

/** Keeps the warnings of a test out of the output. */
const spyOnWarnings = () => {
  const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
  onTestFinished(() => {
    warned.mockRestore();
  });
  return warned;
};

async function isHandled(store: CallbackStore, key: string): Promise<boolean> {
  const reply = await store.claim(key, { ...request, token: 'probe' });
  if (reply.state === 'claimed') await reply.claim.release();
  return reply.state === 'handled';
}

const store = memoryStore();
test.concurrent.each(storeContract)('$title', ({ check }) => check(store));

test('the memory store forgets the oldest callback when it is full, and warns once', async () => {
  const warned = spyOnWarnings();
  const small = memoryStore({ maxEntries: 2 });
  for (const key of ['one', 'two', 'three', 'four']) await settle(small, key);
  const states = await Promise.all(['one', 'two', 'three', 'four'].map((key) => isHandled(small, key)));
  expect(states).toEqual([false, false, true, true]);
  expect(warned.mock.calls).toEqual([
    [
      'The memory store is full: it forgets callbacks early, beyond 2 of them, or 2000 characters.',
      { code: 'TRANSFER_CALLBACKS_MEMORY_STORE_FULL' },
    ],
  ]);
});

test('the memory store forgets the oldest callbacks for one with long facts, and never the latest', async () => {
  const warned = spyOnWarnings();
  const small = memoryStore({ maxEntries: 4 });
  const long = (length: number) => ({ fingerprint: 'f'.repeat(length) });
  await settle(small, 'one', long(1_900));
  expect(await small.forget('one', 'f'.repeat(1_900))).toBe(true);
  for (const key of ['two', 'three']) await settle(small, key, long(1_900));
  expect(warned).not.toHaveBeenCalled();
  await settle(small, 'four', long(1_900));
  const states = (keys: string[]) => Promise.all(keys.map((key) => isHandled(small, key)));
  expect(await states(['two', 'three', 'four'])).toEqual([false, true, true]);
  await settle(small, 'five', long(5_000));
  expect(await states(['three', 'four', 'five'])).toEqual([false, false, true]);
  expect(warned).toHaveBeenCalledOnce();
});

test('the oldest callback of a full memory store is the one that was handled first, whatever was forgotten since', async () => {
  const small = memoryStore({ maxEntries: 3 });
  for (const key of ['one', 'two', 'three']) await settle(small, key);
  expect(await small.forget('one', 'f')).toBe(true);
  await settle(small, 'one');
  expect(await small.forget('two', 'f')).toBe(true);
  await settle(small, 'four');
  await settle(small, 'five');
  const states = await Promise.all(['one', 'two', 'three', 'four', 'five'].map((key) => isHandled(small, key)));
  expect(states).toEqual([true, false, false, true, true]);
});

test('the memory store is local to its process, claims one record at a time and undoes no writes', () => {
  expect(memoryStore()).toMatchObject({ transactional: false, claimsBoth: false, processLocal: true });
});

test('a lease and a record end in the millisecond that is their last', async () => {
  fakeClock();
  const own = memoryStore();
  const held = await claim(own, 'k');
  vi.advanceTimersByTime(request.leaseMs);
  expect(await held.renew()).toBe(false);
  expect(await held.settle()).toEqual({ overlapped: true });
  vi.advanceTimersByTime(request.retentionMs);
  expect(await own.forget('k', request.fingerprint)).toBe(false);
});

test('a running handler never loses its claim to a full store', async () => {
  spyOnWarnings();
  const small = memoryStore({ maxEntries: 1 });
  await claim(small, 'running');
  for (const key of ['one', 'two', 'three']) await settle(small, key);
  expect((await small.claim('running', { ...request, token: 'b' })).state).toBe('in_progress');
});

test('records that expire together do not block the next delivery', async () => {
  fakeClock();
  const large = memoryStore({ maxEntries: 1_000_000 });
  for (let index = 0; index < 300_000; index += 1) await settle(large, `old-${index}`);
  vi.advanceTimersByTime(10_000);
  // Processor time, which other programs on the machine do not add to.
  const before = process.cpuUsage();
  await settle(large, 'new');
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(50);
  expect(await isHandled(large, 'old-299999')).toBe(false);
  expect(await isHandled(large, 'new')).toBe(true);
});

test('the memory store forgets expired records before records that have not expired', async () => {
  fakeClock();
  const warned = spyOnWarnings();
  const small = memoryStore({ maxEntries: 2 });
  for (let round = 0; round < 5; round += 1) {
    await settle(small, `a${round}`);
    await settle(small, `b${round}`);
    vi.advanceTimersByTime(10_000);
    expect(await isHandled(small, `b${round}`)).toBe(false);
  }
  expect(warned).not.toHaveBeenCalled();
});

test('the retention of a callback that is handled again counts from the last settling', async () => {
  fakeClock();
  const store = memoryStore({ maxEntries: 2 });
  const late = await claim(store, 'again', { token: 'late' });
  vi.advanceTimersByTime(1_000);
  await settle(store, 'again');
  await settle(store, 'other');
  vi.advanceTimersByTime(6_000);
  expect(await late.settle()).toEqual({ overlapped: true });
  vi.advanceTimersByTime(6_000);
  expect([await isHandled(store, 'again'), await isHandled(store, 'other')]).toEqual([true, false]);
});

test('a callback that is handled again becomes the youngest, and the older ones are forgotten before it', async () => {
  spyOnWarnings();
  const store = memoryStore({ maxEntries: 2 });
  const late = await claim(store, 'again', { leaseMs: 1 });
  await vi.waitFor(() => settle(store, 'again', { token: 'b' }));
  await settle(store, 'other');
  await late.settle();
  for (const key of ['three', 'four']) await settle(store, key);
  const keys = ['again', 'other', 'three', 'four'];
  expect(await Promise.all(keys.map((key) => isHandled(store, key)))).toEqual([false, false, true, true]);
});

test('a claim that is sent again after it has expired is still one claim', async () => {
  fakeClock();
  const store = memoryStore();
  const [first, handled] = [await claim(store, 'released'), await claim(store, 'handled')];
  vi.advanceTimersByTime(1_000);
  for (const key of ['released', 'handled']) expect((await store.claim(key, request)).state).toBe('claimed');
  expect(await first.renew()).toBe(true);
  await first.release();
  expect((await store.claim('released', { ...request, token: 'b' })).state).toBe('claimed');
  expect(await handled.settle()).toEqual({ overlapped: false });
});

test('shows who holds a claim and since when, and how long a handled callback is remembered', async () => {
  fakeClock();
  const store = memoryStore();
  const token = '2026-10-05T02:58:12.113Z/payouts-7f9c/41/k3x9q2-17';
  expect(await store.read('one')).toEqual({ state: 'free' });
  const held = await claim(store, 'one', { token });
  expect(await store.read('one')).toEqual({
    state: 'claimed',
    delivery: token,
    since: new Date('2026-10-05T02:58:12.113Z'),
    by: 'payouts-7f9c, process 41',
    leaseLeftMs: 1_000,
  });
  await held.settle();
  const clock = vi.spyOn(Date, 'now').mockReturnValue(1_000);
  const expiresAt = new Date(11_000);
  expect(await store.read('one')).toEqual({ state: 'handled', fingerprint: 'f', expiresAt });
  clock.mockRestore();
  vi.advanceTimersByTime(10_000);
  expect(await store.read('one')).toEqual({ state: 'free' });
});

test.each([
  [{ maxEntries: 0 }, 'Expected `maxEntries` to be a whole number from 1 to 2147483647, got 0.'],
  [{ max: 5 }, 'Unknown option `max`; known are maxEntries.'],
])('the memory store refuses the options %j', (options, message) => {
  expect(() => memoryStore(options as object)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
  );
});
