import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RetryLater } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('a delivery', () => {
  test.each([
    ['an error', new Error('database down')],
    ['undefined', undefined],
    ['null', null],
    ['a string', 'no'],
    ['an error that claims to be a 200', Object.assign(new Error('fine'), { status: 200, outcome: 'processed' })],
  ])(
    'a delivery whose handler throws %s fails, and the next delivery runs the handler again',
    async (_name, thrown) => {
      const onSuccess = vi.fn().mockRejectedValueOnce(thrown);
      const receiver = receiverOf({ onSuccess });
      const callback = transferSucceeded();
      expect(await receiver.receive(callback)).toMatchObject({ outcome: 'handler_failed', error: thrown });
      expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
      expect(onSuccess).toHaveBeenCalledTimes(2);
    },
  );

  test('a delivery fails when its handler throws before it returns a promise', async () => {
    const error = new Error('immediately');
    const receiver = receiverOf({
      onSuccess: () => {
        throw error;
      },
    });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed', error });
  });

  test.each([
    ['an object that is no error', { code: 'RETRY_LATER', retryAfterMs: 90_000 }],
    ['an error of another code', Object.assign(new Error('no'), { code: 'LATER', retryAfterMs: 90_000 })],
    ['an error without its time', Object.assign(new Error('no'), { code: 'RETRY_LATER' })],
    ['a text', 'RETRY_LATER'],
    ['null', null],
  ])('%s is no RetryLater', async (_what, thrown) => {
    const receiver = receiverOf({ onSuccess: vi.fn().mockRejectedValue(thrown) });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'handler_failed', error: thrown });
  });

  test('a handler asks for a later retry with RetryLater from any copy of the package', async () => {
    const foreign = Object.assign(new Error('later'), { code: 'RETRY_LATER', retryAfterMs: 90_000 });
    const receiver = receiverOf({
      onSuccess: vi.fn().mockRejectedValueOnce(new RetryLater()).mockRejectedValue(foreign),
    });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 30_000 });
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'retry_later', retryAfterMs: 90_000 });
  });
});
