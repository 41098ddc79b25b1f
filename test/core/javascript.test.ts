import { beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, transferCallbackReceiver, type CallbackStore } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf } from './support.js';

// What TypeScript refuses, and JavaScript lets through.
beforeEach(fakeClock);

test('receive takes null for no options', async () => {
  expect(await receiverOf().receive(transferSucceeded(), null as never)).toMatchObject({ outcome: 'processed' });
});

describe('a store', () => {
  const call = (): Promise<never> => Promise.reject(new Error('not called'));

  test.each([
    ['undefined', undefined],
    ['an unknown state', { state: 'done' }],
    ['claimed without a claim', { state: 'claimed' }],
    ['a claim without renew', { state: 'claimed', claim: { settle: call, release: call } }],
    ['a claim without settle', { state: 'claimed', claim: { renew: call, release: call } }],
    ['a claim without release', { state: 'claimed', claim: { renew: call, settle: call } }],
    ['handled without a fingerprint', { state: 'handled' }],
    ['the word of an older version', { state: 'settled', fingerprint: '[]' }],
  ])('that replies with %s runs no handler', async (_name, reply) => {
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: { claim: () => Promise.resolve(reply as never) }, onSuccess });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({
      outcome: 'store_unavailable',
      error: { code: 'STORE_REPLY_UNEXPECTED', message: expect.stringContaining('or with `handled`') as string },
    });
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.close()).toEqual({ unfinished: 0, ids: [] });
  });

  test('that replies without a promise works', async () => {
    const claims = new Map<string, string>();
    const store = {
      claim(key: string, { token, fingerprint }: { token: string; fingerprint: string }) {
        const found = claims.get(key);
        if (found !== undefined) return { state: 'handled', fingerprint: found };
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
});

describe('options', () => {
  test('may be an instance of a class, whose methods keep their `this`', async () => {
    const handled: unknown[] = [];
    class Payouts {
      readonly store = memoryStore();
      readonly logger = false;
      onSuccess(): void {
        handled.push('paid', this.store);
      }
      onFailed(): void {
        handled.push('refunded', this.store);
      }
    }
    const payouts = new Payouts();
    const receiver = transferCallbackReceiver(payouts);
    for (const callback of [transferSucceeded(), transferFailed()]) await receiver.receive(callback);
    expect(handled).toEqual(['paid', payouts.store, 'refunded', payouts.store]);
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
