import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { memoryStore, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, never, receiverOf } from './support.js';

beforeEach(fakeClock);
afterEach(() => {
  vi.useRealTimers();
});

describe('verify', () => {
  test('a verifier that never settles ends as unauthorized within verifyTimeoutMs', async () => {
    const delivery = receiverOf({ verifyTimeoutMs: 700 }).receive(transferSucceeded(), { verify: never });
    await vi.advanceTimersByTimeAsync(700);
    expect(await delivery).toMatchObject({
      outcome: 'unauthorized',
      durationMs: 700,
      error: { code: 'VERIFY_TIMEOUT', message: 'No verdict within 700 ms.' },
    });
  });

  test.each([[{ ok: false }], ['no'], [1], [Promise.resolve(1)], [Promise.resolve({ ok: false })]])(
    'a verdict that is not true, such as %o, trusts nobody',
    async (verdict) => {
      const onSuccess = vi.fn();
      const verify = (): boolean => verdict as unknown as boolean;
      expect(await receiverOf({ onSuccess }).receive(transferSucceeded(), { verify })).toMatchObject({
        outcome: 'unauthorized',
      });
      expect(onSuccess).not.toHaveBeenCalled();
    },
  );

  test('close waits for a delivery that is being verified', async () => {
    const verdict = later<boolean>();
    const receiver = receiverOf();
    const delivery = receiver.receive(transferSucceeded(), { verify: () => verdict.promise });
    const closed = vi.fn();
    void receiver.close().then(closed);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(closed).not.toHaveBeenCalled();
    verdict.resolve(true);
    expect(await delivery).toMatchObject({ outcome: 'closing' });
    await vi.advanceTimersByTimeAsync(0);
    expect(closed).toHaveBeenCalledWith({ unfinished: 0, ids: [] });
  });

  test('an invalid callback of a verified sender keeps its ids, and is an error in the log', async () => {
    const logger = { warn: vi.fn(), error: vi.fn() };
    const receiver = receiverOf({ logger });
    const { data } = transferSucceeded();
    const drifted = { event: 'transfer.success', data: { ...data, vouchercode: null } };
    expect(await receiver.receive(drifted, { verify: () => true })).toMatchObject({
      outcome: 'invalid',
      verified: true,
      id: data.id,
      externalId: data.externalId,
      issues: [{ path: ['data', 'vouchercode'] }],
    });
    expect(logger.error).toHaveBeenCalledTimes(1);
    expect(await receiver.receive(drifted)).toMatchObject({ outcome: 'invalid', verified: false });
    expect(logger.warn).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['an id with a line break', { id: 'a\nb', externalId: 'payout-1' }, { externalId: 'payout-1' }],
    ['ids that are no text', { id: 1, externalId: {} }, {}],
    [
      'an externalId of 1 000 characters',
      { id: 'a', externalId: 'x'.repeat(1_000) },
      { id: 'a', externalId: 'x'.repeat(255) },
    ],
  ])('an invalid callback with %s keeps what is safe to print', async (_name, ids, kept) => {
    const outcome = await receiverOf().receive({ data: ids });
    expect(outcome).toMatchObject({ outcome: 'invalid', ...kept });
    expect(Object.keys(outcome).filter((name) => /^(id|externalId)$/.test(name))).toEqual(Object.keys(kept));
  });
});

describe('confirm', () => {
  test('runs before the claim: a stranger who loops forgeries does not keep the real callback out', async () => {
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

  test('that changes the callback in place does not confirm itself', async () => {
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
    ['no data', { event: 'transfer.success' }],
    ['null for data', { event: 'transfer.success', data: null }],
  ])('that returns %s leaves the callback unconfirmed', async (_name, returned) => {
    const receiver = receiverOf({ confirm: () => returned as unknown as TransferCallback });
    expect(await receiver.receive(transferSucceeded())).toMatchObject({
      outcome: 'unconfirmed',
      error: { code: 'UNCONFIRMED' },
    });
  });

  test('learns where the callback came from', async () => {
    const confirm = vi.fn((callback: TransferCallback) => callback);
    await receiverOf({ confirm }).receive(transferSucceeded(), { source: 'reconciliation' });
    expect(confirm.mock.calls[0]).toMatchObject([{}, { source: 'reconciliation', signal: { aborted: false } }]);
  });

  test('its signal aborts at its deadline, and when the receiver closes', async () => {
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
