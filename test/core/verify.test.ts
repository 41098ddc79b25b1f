import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, never, receiverOf } from './support.js';
import { containing } from '../support/helpers/containing.js';

beforeEach(fakeClock);

test('a delivery is unauthorized when its verifier returns false, and does not reach the store', async () => {
  const verify = vi.fn(() => false);
  const claim = vi.fn();
  const receiver = receiverOf({ store: { claim } });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback, { verify })).toEqual({
    outcome: 'unauthorized',
    source: 'direct',
    durationMs: 0,
    delivery: expect.any(String) as string,
  });
  expect(await receiver.receive('nonsense', { verify })).toEqual({
    outcome: 'unauthorized',
    issues: [{ path: [], message: 'Invalid input: expected object, received string' }],
    source: 'direct',
    durationMs: 0,
    delivery: expect.any(String) as string,
  });
  expect(verify.mock.calls).toEqual([[callback], [undefined]]);
  expect(claim).not.toHaveBeenCalled();
});

test('what is wrong with the app is in the outcome, although the sender is refused', async () => {
  const error = new Error('the schema of the app');
  const schema = z.unknown().transform(() => {
    throw error;
  }) as never;
  const receiver = receiverOf({ schema });
  expect(await receiver.receive(transferSucceeded(), { verify: () => false })).toMatchObject({
    outcome: 'unauthorized',
    error,
  });
  const refusal = new Error('no key server');
  expect(
    await receiver.receive(transferSucceeded(), {
      verify: () => {
        throw refusal;
      },
    }),
  ).toMatchObject({ outcome: 'unauthorized', error: refusal });
});

test('a verifier that never finishes ends as unauthorized after verifyTimeoutMs', async () => {
  const delivery = receiverOf({ verifyTimeoutMs: 700 }).receive(transferSucceeded(), { verify: never });
  await vi.advanceTimersByTimeAsync(700);
  expect(await delivery).toMatchObject({
    outcome: 'unauthorized',
    durationMs: 700,
    error: { code: 'VERIFY_TIMEOUT', message: containing('No verdict within 700 ms.') },
  });
});

test.each([1, { ok: false }, Promise.resolve(false), Promise.resolve({ ok: false })])(
  'a verdict other than true, such as %o, refuses the sender',
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
