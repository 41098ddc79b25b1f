import { beforeEach, expect, test, vi } from 'vitest';
import type { Claim, HandlerContext } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { recordingLogger } from '../support/helpers/logger.js';
import { fakeClock, later, receiverOf, storeWith, turn } from './support.js';

beforeEach(fakeClock);

/** A handler that wants `mail` to be called after the commit. */
const mailing = (mail: () => unknown) => ({
  onSuccess: (_callback: unknown, { afterCommit }: HandlerContext) => {
    afterCommit(mail);
  },
});

test('a function of afterCommit is called once the success is recorded, once for all deliveries of the callback', async () => {
  const steps: string[] = [];
  const store = storeWith({
    granted: (claim) => ({
      async settle() {
        const handled = await claim.settle();
        steps.push('recorded');
        return handled;
      },
    }),
  });
  const receiver = receiverOf({ store, ...mailing(() => steps.push('mailed')) });
  const callback = transferSucceeded();
  const outcomes = await Promise.all([receiver.receive(callback), receiver.receive(callback)]);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(['processed', 'duplicate']);
  expect(steps, 'a response must not wait for it').toEqual(['recorded']);
  await receiver.receive(callback);
  await turn();
  expect(steps).toEqual(['recorded', 'mailed']);
});

test('after a failure the function of the next attempt is called, and that of the failed one never', async () => {
  const mailed: number[] = [];
  let attempts = 0;
  const receiver = receiverOf({
    onSuccess(_callback, { afterCommit }) {
      const attempt = (attempts += 1);
      afterCommit(() => mailed.push(attempt));
      if (attempt === 1) throw new Error('no balance');
    },
  });
  const callback = transferSucceeded();
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'handler_failed' });
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  await turn();
  expect(mailed).toEqual([2]);
});

test('a function of afterCommit is not called for a success that is overlapped', async () => {
  const mail = vi.fn();
  const store = storeWith({ granted: () => ({ settle: () => Promise.resolve({ overlapped: true }) }) });
  const receiver = receiverOf({ store, ...mailing(mail) });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed', overlapped: true });
  await turn();
  expect(mail).not.toHaveBeenCalled();
});

test('a function of afterCommit of a success that is recorded in the background is called then', async () => {
  const mail = vi.fn();
  let isDown = true;
  const store = storeWith({
    granted: (claim) => ({ settle: () => (isDown ? Promise.reject(new Error('down')) : claim.settle()) }),
  });
  const receiver = receiverOf({ store, ...mailing(mail) });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({ outcome: 'processed' });
  await vi.advanceTimersByTimeAsync(10_000);
  await turn();
  expect(mail).not.toHaveBeenCalled();
  isDown = false;
  await vi.advanceTimersByTimeAsync(10_000);
  await turn();
  expect(mail).toHaveBeenCalledOnce();
});

test('a function of afterCommit that fails is logged, changes nothing, and keeps no other from being called', async () => {
  const logger = recordingLogger();
  const mail = vi.fn();
  const receiver = receiverOf({
    logger,
    onSuccess(_callback, { afterCommit }) {
      afterCommit(() => {
        throw new Error('SMTP is down');
      });
      afterCommit(() => Promise.reject(new Error('SMTP is down')));
      afterCommit(mail);
    },
  });
  const callback = transferSucceeded();
  const { delivery } = await receiver.receive(callback);
  await turn();
  expect(mail).toHaveBeenCalledOnce();
  const line = {
    level: 'error',
    details: expect.objectContaining({ delivery, id: callback.data.id }) as object,
    message: 'A function of `afterCommit` threw; the callback stays handled.',
  };
  expect(logger.lines).toEqual([line, line]);
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate' });
});

test('a function of afterCommit that has not ended after handlerTimeoutMs is logged once', async () => {
  const logger = recordingLogger();
  const [slow, endless] = [later(), later()];
  const receiver = receiverOf({
    logger,
    handlerTimeoutMs: 3_000,
    onSuccess(_callback, { afterCommit }) {
      for (const { promise } of [slow, endless]) afterCommit(() => promise);
    },
  });
  const callback = transferSucceeded();
  const { delivery } = await receiver.receive(callback);
  await turn();
  await vi.advanceTimersByTimeAsync(2_999);
  slow.resolve();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(logger.lines).toEqual([
    {
      level: 'warn',
      details: { delivery, id: callback.data.id },
      message: 'A function of `afterCommit` has not ended after 3000 ms; it still runs.',
    },
  ]);
});

test('what is to follow the commit is waited for by close, which names what still runs', async () => {
  const sent = later();
  const callback = transferSucceeded();
  const receiver = receiverOf(mailing(() => sent.promise));
  await receiver.receive(callback);
  const closed = receiver.close({ timeoutMs: 5_000 });
  await vi.advanceTimersByTimeAsync(4_000);
  sent.resolve();
  expect(await closed).toEqual({ unfinished: 0, ids: [] });

  const endless = receiverOf({
    onSuccess(_callback, { afterCommit }) {
      for (let calls = 0; calls < 3; calls += 1) afterCommit(() => later().promise);
    },
  });
  await endless.receive(callback);
  const given = endless.close({ timeoutMs: 5_000 });
  await vi.advanceTimersByTimeAsync(7_000);
  expect(await given).toEqual({ unfinished: 1, ids: [callback.data.id] });
});

test('afterCommit refuses what is no function, and what comes after the handler has finished', async () => {
  let kept: HandlerContext['afterCommit'] | undefined;
  const receiver = receiverOf({
    onSuccess(_callback, { afterCommit }) {
      kept = afterCommit;
      afterCommit('mail' as never);
    },
  });
  expect(await receiver.receive(transferSucceeded())).toMatchObject({
    outcome: 'handler_failed',
    error: { code: 'INVALID_ARGUMENT', option: 'afterCommit' },
  });
  expect(() => kept?.(() => undefined)).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: 'Expected `afterCommit` to be called before the handler finishes.',
    }),
  );
});

// A host may end the process after the response, unless its `waitUntil` has a promise.

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
    ...mailing(() => sent.promise),
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
