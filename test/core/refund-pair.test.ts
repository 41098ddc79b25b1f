// A store that undoes no writes claims the two records of a refund one after the other.
import { expect, test, vi } from 'vitest';
import { memoryStore, type Claim, type ClaimReply, type ClaimRequest } from 'transfer-callbacks';
import { recordingLogger } from '../support/helpers/logger.js';
import { announced, reversingReceiver } from '../support/helpers/reversing.js';
import { later } from './support.js';

const id = 'payout';

test('a failure or a reversal whose own record cannot be claimed runs no handler, and frees the transfer', async () => {
  const store = memoryStore();
  const { receiver, ran } = reversingReceiver({
    ...store,
    claim: (key, request) =>
      request.record === 'reversal' ? Promise.reject(new Error('down')) : store.claim(key, request),
  });
  for (const status of ['FAILED', 'REVERSED'] as const) {
    expect(await receiver.receive(announced(status, id))).toMatchObject({ outcome: 'store_unavailable' });
  }
  expect(await receiver.receive(announced('SUCCESS', id))).toMatchObject({ outcome: 'processed' });
  expect(ran).toEqual([`SUCCESS ${id}`]);
});

/** A store whose claims of refunds are changed. */
function withRefunds(change: (claim: Claim) => Partial<Claim>) {
  const store = memoryStore();
  return {
    ...store,
    async claim(key: string, request: ClaimRequest): Promise<ClaimReply> {
      const reply = await store.claim(key, request);
      if (reply.state !== 'claimed' || request.record !== 'reversal') return reply;
      return { state: 'claimed', claim: { ...reply.claim, ...change(reply.claim) } };
    },
  };
}

test('a failure whose second record cannot be handled is processed, and handled in the background', async () => {
  let calls = 0;
  const store = withRefunds((claim) => ({
    settle: () => ((calls += 1) === 1 ? Promise.reject(new Error('down')) : claim.settle()),
  }));
  const logger = recordingLogger();
  const { receiver, ran } = reversingReceiver(store, { logger });
  const failed = await receiver.receive(announced('FAILED', id));
  expect(failed).toMatchObject({ outcome: 'processed', overlapped: false, error: new Error('down') });
  expect(await store.read(id)).toMatchObject({ state: 'handled' });
  expect(await receiver.receive(announced('REVERSED', id))).toMatchObject({ outcome: 'duplicate' });
  await vi.waitUntil(async () => (await store.read(id, 'reversal')).state === 'handled');
  expect(logger.lines.at(-1)?.message).toBe('A handled callback was recorded on retry.');
  expect(ran).toEqual([`FAILED ${id}`]);
});

test('a failure whose transfer cannot be handled settles no refund before it', async () => {
  const store = memoryStore();
  const handled: string[] = [];
  const { receiver } = reversingReceiver({
    ...store,
    async claim(key, request) {
      const reply = await store.claim(key, request);
      if (reply.state !== 'claimed') return reply;
      const settle = () => {
        handled.push(request.record ?? 'transfer');
        return handled.length === 1 ? Promise.reject(new Error('down')) : reply.claim.settle();
      };
      return { state: 'claimed', claim: { ...reply.claim, settle } };
    },
  });
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'processed' });
  expect(handled).toEqual(['transfer']);
  await vi.waitUntil(() => handled.length === 3);
  expect(handled).toEqual(['transfer', 'transfer', 'reversal']);
});

test.each(['transfer', 'reversal'])('a failure that loses the lease of the %s has lost its claim', async (lost) => {
  const store = memoryStore();
  const goes = later();
  const { receiver } = reversingReceiver(
    {
      ...store,
      async claim(key, request) {
        const reply = await store.claim(key, request);
        if (reply.state !== 'claimed' || (request.record ?? 'transfer') !== lost) return reply;
        return { state: 'claimed', claim: { ...reply.claim, renew: () => Promise.resolve(false) } };
      },
    },
    {
      storeTimeoutMs: 50,
      leaseMs: 151,
      inFlightWaitMs: 0,
      handle: (_status, _id, { signal }) => {
        signal.addEventListener('abort', () => {
          goes.resolve();
        });
        return goes.promise.then(() => Promise.reject(signal.reason as Error));
      },
    },
  );
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({
    outcome: 'handler_failed',
    error: { code: 'LEASE_LOST' },
  });
  expect(await receiver.inspect(id)).toEqual({ state: 'free' });
});

test('a refund that cannot be released again after its transfer was refused ends its delivery', async () => {
  const store = withRefunds(() => ({ release: () => Promise.reject(new Error('down')) }));
  const { receiver, ran } = reversingReceiver(store);
  await receiver.receive(announced('SUCCESS', id));
  const failed = await receiver.receive(announced('FAILED', id));
  expect(failed).toMatchObject({ outcome: 'store_unavailable', error: new Error('down') });
  expect(ran).toEqual([`SUCCESS ${id}`]);
});

test('a transfer that cannot be claimed leaves no claim of its refund', async () => {
  const store = memoryStore();
  const { receiver } = reversingReceiver({
    ...store,
    claim: (key, request) =>
      request.record === undefined ? Promise.reject(new Error('down')) : store.claim(key, request),
  });
  expect(await receiver.receive(announced('FAILED', id))).toMatchObject({ outcome: 'store_unavailable' });
  expect(await store.read(id, 'reversal')).toEqual({ state: 'free' });
});
