import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { HandlerContext } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/logger.js';
import { fakeClock, later, never, receiverOf, storeWith } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('deadlines', () => {
  test('the signal of a handler aborts when its lease is lost', async () => {
    let context: HandlerContext | undefined;
    const logger = recordingLogger();
    const renew = vi.fn().mockResolvedValueOnce(true).mockResolvedValue(false);
    const receiver = receiverOf({
      store: storeWith({ lease: () => ({ renew }) }),
      logger,
      onSuccess: (_callback, given) => {
        context = given;
        return never();
      },
    });
    void receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(9_999);
    expect(context?.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(context?.signal.reason).toMatchObject({ code: 'LEASE_LOST' });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(renew).toHaveBeenCalledTimes(2);
    expect(logger.lines).toMatchObject([{ level: 'error', message: expect.stringContaining('was lost') as string }]);
  });

  test('one renewal that fails or hangs does not end the lease', async () => {
    const renewals = vi.fn().mockRejectedValueOnce(new Error('down')).mockImplementationOnce(never);
    const work = later();
    const store = storeWith({
      lease: (lease) => ({ renew: () => (renewals() as Promise<boolean> | undefined) ?? lease.renew() }),
    });
    const receiver = receiverOf({ store, onSuccess: () => work.promise });
    const delivery = receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(14_999);
    work.resolve();
    expect(await delivery).toMatchObject({ outcome: 'processed', overlapped: false });
  });

  test('a lease is not renewed after a success or a failure', async () => {
    const renew = vi.fn();
    const onSuccess = vi.fn().mockRejectedValueOnce(new Error('first'));
    const receiver = receiverOf({ store: storeWith({ lease: () => ({ renew }) }), onSuccess });
    const callback = transferSucceeded();
    await receiver.receive(callback);
    await receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(renew).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a renewal that is refused after the handler has finished reports no lost lease', async () => {
    const work = later();
    const response = later<boolean>();
    const logger = recordingLogger();
    const store = storeWith({ lease: () => ({ renew: () => response.promise }) });
    const receiver = receiverOf({ store, logger, onSuccess: () => work.promise });
    const delivery = receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(5_000);
    work.resolve();
    await delivery;
    response.resolve(false);
    await vi.advanceTimersByTimeAsync(0);
    expect(logger.lines).toEqual([]);
  });
});
