import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, RetryLater, transferCallbackReceiver, type CallbackStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf, storeWith } from './support.js';

// What TypeScript refuses, and JavaScript lets through.
beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('receive', () => {
  test('takes null for no options', async () => {
    expect(await receiverOf().receive(transferSucceeded(), null as never)).toMatchObject({ outcome: 'processed' });
  });
});

describe('a store', () => {
  const call = (): Promise<never> => Promise.reject(new Error('not called'));

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['true', true],
    ['an unknown state', { state: 'done' }],
    ['claimed without a claim', { state: 'claimed' }],
    ['claimed with null for its claim', { state: 'claimed', claim: null }],
    ['claimed with a text for its claim', { state: 'claimed', claim: 'a' }],
    ['a claim without renew', { state: 'claimed', claim: { settle: call, release: call } }],
    ['a claim without settle', { state: 'claimed', claim: { renew: call, release: call } }],
    ['a claim without release', { state: 'claimed', claim: { renew: call, settle: call } }],
    ['settled without a fingerprint', { state: 'settled' }],
  ])('that replies with %s runs no handler', async (_name, reply) => {
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: { claim: () => Promise.resolve(reply as never) }, onSuccess });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error: { code: 'STORE_REPLY_UNEXPECTED' },
    });
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
  });

  test('that replies without a promise works', async () => {
    const claims = new Map<string, string>();
    const store = {
      claim(key: string, { token, fingerprint }: { token: string; fingerprint: string }) {
        const found = claims.get(key);
        if (found !== undefined) return { state: 'settled', fingerprint: found };
        claims.set(key, token);
        const settle = (): void => void claims.set(key, fingerprint);
        return { state: 'claimed', claim: { renew: () => true, settle, release: () => claims.delete(key) } };
      },
    } as unknown as CallbackStore;
    const receiver = receiverOf({ store });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed', overlapped: false });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('whose settling resolves with nothing has settled', async () => {
    const settle = vi.fn(() => Promise.resolve(undefined as never));
    const receiver = receiverOf({ store: storeWith({ granted: () => ({ settle }) }) });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed', overlapped: false });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(settle).toHaveBeenCalledTimes(1);
  });
});

describe('options', () => {
  test('may be an instance of a class, whose methods keep their `this`', async () => {
    class Payouts {
      readonly store = memoryStore();
      readonly logger = false;
      static readonly handled: string[] = [];
      onSuccess(): void {
        Payouts.handled.push(`paid, on ${this.store.processLocal ? 'memory' : 'another store'}`);
      }
      onFailed(): void {
        Payouts.handled.push(`refunded, on ${this.store.processLocal ? 'memory' : 'another store'}`);
      }
    }
    const receiver = transferCallbackReceiver(new Payouts());
    await receiver.receive(transferSucceeded());
    await receiver.receive(transferFailed());
    expect(Payouts.handled).toEqual(['paid, on memory', 'refunded, on memory']);
  });

  test('that are inherited count', async () => {
    const options = Object.create({
      store: memoryStore(),
      onSuccess: () => undefined,
      onFailed: () => undefined,
      logger: false,
    }) as Parameters<typeof transferCallbackReceiver>[0];
    expect(await transferCallbackReceiver(options).receive(transferSucceeded())).toMatchObject({
      outcome: 'processed',
    });
  });

  test('are read once: a getter cannot change its mind', async () => {
    let reads = 0;
    const receiver = receiverOf({
      get store() {
        reads += 1;
        return memoryStore();
      },
    });
    const callback = transferSucceeded();
    await receiver.receive(callback);
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
    expect(reads).toBe(1);
  });
});

test('RetryLater takes null for no options', () => {
  expect(new RetryLater('at night', null).retryAfterMs).toBe(30_000);
});
