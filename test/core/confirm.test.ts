import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, never, receiverOf } from './support.js';
import { containing } from '../support/containing.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('confirm', () => {
  test('the handler gets the callback that confirm has read', async () => {
    const onSuccess = vi.fn();
    const read = (callback: TransferCallback): TransferCallback =>
      ({ ...callback, data: { ...callback.data, provider: 'as read' } }) as TransferCallback;
    const receiver = receiverOf({ confirm: (callback) => Promise.resolve(read(callback)), onSuccess });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
    expect(onSuccess.mock.calls[0]).toMatchObject([{ data: { provider: 'as read' } }, {}]);
  });

  test.each<[string, (callback: TransferCallback) => unknown]>([
    ['another transfer', (callback) => transferSucceeded({ ...callback.data, id: 'other' } as object)],
    ['another amount', (callback) => transferSucceeded({ ...callback.data, amount: 1 } as object)],
    ['another event', (callback) => ({ ...callback, event: 'transfer.failed' })],
    ['a throw', () => { throw new Error('service down'); }], // prettier-ignore
    ['a rejection', () => Promise.reject(new Error('service down'))],
  ])('a confirm that ends with %s leaves the callback unconfirmed, unhandled and free', async (_name, response) => {
    const onSuccess = vi.fn();
    const confirm = vi.fn((callback: TransferCallback) => callback as unknown);
    confirm.mockImplementationOnce(response);
    const receiver = receiverOf({ confirm: confirm as (callback: TransferCallback) => TransferCallback, onSuccess });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'unconfirmed',
      error: expect.any(Error) as Error,
    });
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  });

  test('a confirm that exceeds its deadline ends the delivery, and the handler does not run after it', async () => {
    const onSuccess = vi.fn();
    const response = later<TransferCallback>();
    const confirm = vi
      .fn((callback: TransferCallback) => Promise.resolve(callback))
      .mockReturnValueOnce(response.promise);
    const receiver = receiverOf({ confirm, onSuccess });
    const callback = transferSucceeded();
    const delivery = receiver.receive(callback);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await delivery).toMatchObject({ outcome: 'unconfirmed', error: { code: 'CONFIRM_TIMEOUT' } });
    response.resolve(callback);
    await vi.advanceTimersByTimeAsync(0);
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  });
});

describe('confirm', () => {
  test('a confirm that never finishes ends as unconfirmed after confirmTimeoutMs', async () => {
    const delivery = receiverOf({ confirmTimeoutMs: 700, confirm: never }).receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(700);
    expect(await delivery).toMatchObject({
      outcome: 'unconfirmed',
      durationMs: 700,
      error: { code: 'CONFIRM_TIMEOUT', message: containing('`confirm` did not finish within 700 ms.') },
    });
  });

  test('confirm runs before the claim, so that repeated forgeries do not block the real callback', async () => {
    const real = transferSucceeded();
    const forged = transferSucceeded({ ...real.data, amount: 1 });
    const onSuccess = vi.fn();
    const receiver = receiverOf({
      onSuccess,
      async confirm() {
        await new Promise((resolve) => setTimeout(resolve, 400));
        return real;
      },
    });
    let forging = true;
    const forge = async (): Promise<void> => {
      while (forging) expect(await receiver.receive(forged)).toMatchObject({ outcome: 'unconfirmed' });
    };
    const forgers = Promise.all(Array.from({ length: 20 }, forge));
    await vi.advanceTimersByTimeAsync(100);
    const delivery = receiver.receive(real);
    await vi.advanceTimersByTimeAsync(400);
    expect(await delivery).toMatchObject({ outcome: 'processed', durationMs: 400 });
    forging = false;
    await vi.advanceTimersByTimeAsync(400);
    await forgers;
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test('a confirm that changes the callback in place does not confirm it', async () => {
    const onFailed = vi.fn();
    const receiver = receiverOf({
      onFailed,
      confirm(callback) {
        Object.assign(callback.data, { status: 'SUCCESS' });
        return callback;
      },
    });
    expect(await receiver.receive(transferFailed())).toMatchObject({
      outcome: 'unconfirmed',
      error: { code: 'UNCONFIRMED' },
    });
    expect(onFailed).not.toHaveBeenCalled();
  });

  test.each([
    ['nothing', undefined],
    ['true', true],
    ['no data', { event: 'transfer.success' }],
    ['null for data', { event: 'transfer.success', data: null }],
  ])('a confirm that returns %s leaves the callback unconfirmed', async (_name, returned) => {
    const receiver = receiverOf({ confirm: () => returned as unknown as TransferCallback });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({
      outcome: 'unconfirmed',
      error: { code: 'UNCONFIRMED' },
    });
  });

  test('confirm gets the source of the delivery', async () => {
    const confirm = vi.fn((callback: TransferCallback) => callback);
    await receiverOf({ confirm }).receive(transferSucceeded(), { source: 'reconciliation' });
    expect(confirm.mock.calls[0]).toMatchObject([{}, { source: 'reconciliation', signal: { aborted: false } }]);
  });

  test('the signal of confirm aborts at its deadline, and when the receiver closes', async () => {
    const reasons: unknown[] = [];
    const records = memoryStore();
    const receiver = receiverOf({
      store: records,
      confirm: (_callback, { signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason));
        return never();
      },
    });
    const late = receiver.receive(transferSucceeded());
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await late).toMatchObject({ outcome: 'unconfirmed', error: { code: 'CONFIRM_TIMEOUT' } });
    const closing = receiver.receive(transferSucceeded());
    const closed = receiver.close({ timeoutMs: 100 });
    await vi.advanceTimersByTimeAsync(100);
    expect(await closing).toMatchObject({ outcome: 'closing' });
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
    expect(reasons).toMatchObject([{ code: 'CONFIRM_TIMEOUT' }, { code: 'CLOSING' }]);
  });
});
