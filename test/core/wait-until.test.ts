import { beforeEach, expect, test, vi } from 'vitest';
import type { Claim, HandlerContext } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, later, receiverOf, storeWith, turn } from './support.js';

beforeEach(fakeClock);

/** A `waitUntil` that counts its calls and the promises that have resolved. */
function recordingHost() {
  const host = { calls: 0, ended: 0 };
  const waitUntil = (work: Promise<void>): void => {
    host.calls += 1;
    void work.then(() => (host.ended += 1));
  };
  return { host, waitUntil };
}

test('the promise of waitUntil resolves when the functions of afterCommit have ended', async () => {
  const sent = later();
  const { host, waitUntil } = recordingHost();
  const receiver = receiverOf({
    onSuccess(_callback, { afterCommit }: HandlerContext) {
      afterCommit(() => sent.promise);
      afterCommit(() => Promise.reject(new Error('SMTP is down')));
    },
  });
  expect(await receiver.receive(transferSucceeded(), { waitUntil })).toMatchObject({ outcome: 'processed' });
  await turn();
  await turn();
  expect(host).toEqual({ calls: 1, ended: 0 });
  sent.resolve();
  await turn();
  expect(host).toEqual({ calls: 1, ended: 1 });
});

test('the promise of waitUntil resolves when a late handler has ended, and what follows its success', async () => {
  const [work, sent] = [later(), later()];
  const { host, waitUntil } = recordingHost();
  const receiver = receiverOf({
    async onSuccess(_callback, { afterCommit }: HandlerContext) {
      await work.promise;
      afterCommit(() => sent.promise);
    },
  });
  const received = receiver.receive(transferSucceeded(), { waitUntil });
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await received).toMatchObject({ outcome: 'timed_out' });
  expect(host).toEqual({ calls: 1, ended: 0 });
  work.resolve();
  await turn();
  expect(host.ended).toBe(0);
  sent.resolve();
  await turn();
  expect(host.ended).toBe(1);
});

test('the promise of waitUntil waits for what follows a success that is recorded on retry', async () => {
  const sent = later();
  const settle = (claim: Claim) => vi.fn(() => claim.settle()).mockRejectedValueOnce(new Error('down'));
  const { host, waitUntil } = recordingHost();
  const receiver = receiverOf({
    store: storeWith({ granted: (claim) => ({ settle: settle(claim) }) }),
    onSuccess(_callback, { afterCommit }: HandlerContext) {
      afterCommit(() => sent.promise);
    },
  });
  await receiver.receive(transferSucceeded(), { waitUntil });
  await vi.advanceTimersByTimeAsync(10_000);
  await turn();
  expect(host).toEqual({ calls: 1, ended: 0 });
  sent.resolve();
  await turn();
  expect(host.ended).toBe(1);
});

test('waitUntil is called for a handler that fails, and not for what calls no handler', async () => {
  const { host, waitUntil } = recordingHost();
  const receiver = receiverOf({ onFailed: () => Promise.reject(new Error('no balance')) });
  const callback = transferSucceeded();
  await receiver.receive(callback);
  expect(await receiver.receive(callback, { waitUntil })).toMatchObject({ outcome: 'duplicate' });
  expect(await receiver.receive({}, { waitUntil })).toMatchObject({ outcome: 'invalid' });
  const refusing = { waitUntil, verify: () => false };
  expect(await receiver.receive(transferSucceeded(), refusing)).toMatchObject({ outcome: 'unauthorized' });
  expect(host).toEqual({ calls: 0, ended: 0 });
  const failed = { ...callback, event: 'transfer.failed', data: { ...callback.data, id: 'f', status: 'FAILED' } };
  expect(await receiver.receive(failed, { waitUntil })).toMatchObject({ outcome: 'handler_failed' });
  await turn();
  expect(host).toEqual({ calls: 1, ended: 1 });
});

test.each([
  [
    'throws',
    () => {
      throw new Error('The request is over.');
    },
  ],
  ['rejects', () => Promise.reject(new Error('The request is over.'))],
  ['is no function', 'yes' as never],
])('a waitUntil that %s is logged, and changes no outcome', async (_what, waitUntil) => {
  const logger = recordingLogger();
  const callback = transferSucceeded();
  const { delivery, outcome } = await receiverOf({ logger }).receive(callback, { waitUntil });
  await turn();
  expect(outcome).toBe('processed');
  const message = '`waitUntil` threw; the host may end the process before this delivery is over.';
  const details = { delivery, id: callback.data.id, err: expect.any(Object) as object };
  expect(logger.lines).toEqual([{ level: 'error', message, details }]);
});
