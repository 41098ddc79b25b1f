import { beforeEach, describe, expect, test, vi } from 'vitest';
import {
  redisStore,
  transferCallbackListener,
  type ReceiverOptions,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { post } from '../support/helpers/post.js';
import { serve } from '../support/servers/serve.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { startRedis, type RedisServer } from '../support/servers/redis.js';
import { connectForTest } from '../support/servers/redis-for-file.js';

const storeTimeoutMs = 400;

let server: RedisServer;
let closing: (() => unknown)[];
beforeEach(async () => {
  server = await startRedis({ persistent: true });
  closing = [() => server.stop()];
  return async () => {
    for (const close of closing.reverse()) await close();
  };
});

const clientOf = (port = server.port) => connectForTest(port, { retryStrategy: () => 50, maxRetriesPerRequest: null });

/** A merchant on this Redis, over real HTTP. */
async function merchant(onSuccess: ReceiverOptions['onSuccess'], client = clientOf(), deadlines = { storeTimeoutMs }) {
  const outcomes: TransferCallbackOutcome[] = [];
  const receiver = receiverOf({
    ...deadlines,
    store: redisStore(client),
    inFlightWaitMs: 0,
    onSuccess,
    onOutcome: (outcome) => outcomes.push(outcome),
  });
  const served = await serve(transferCallbackListener({ receiver }));
  closing.push(served.close, () => receiver.close({ timeoutMs: 0 }));
  await client.ping();
  return { url: served.url, outcomes };
}

const stop: Record<string, () => Promise<() => Promise<unknown>>> = {
  'is down': async () => {
    await server.kill();
    return () => server.restart();
  },
  'does not reply': () => {
    server.freeze();
    return Promise.resolve(() => {
      server.thaw();
      return Promise.resolve();
    });
  },
};

describe.each(Object.keys(stop))('while Redis %s', (name) => {
  const stopRedis = stop[name] ?? (() => expect.fail(name));

  test('an outage before the claim gets 503 within storeTimeoutMs and runs no handler, and a later attempt is processed', async () => {
    const onSuccess = vi.fn();
    const { url, outcomes } = await merchant(onSuccess);
    const callback = transferSucceeded();
    const start = await stopRedis();
    expect(await post(url, callback)).toMatchObject({ status: 503, headers: { 'retry-after': '30' } });
    expect(outcomes).toMatchObject([{ outcome: 'store_unavailable', error: { code: 'STORE_TIMEOUT' } }]);
    // One store call, and not a lease of 15 s: a busy machine takes longer than storeTimeoutMs.
    expect(outcomes[0]?.durationMs).toBeLessThan(10_000);
    expect(onSuccess).not.toHaveBeenCalled();

    await start();
    // The claim that was given up is carried out now, and released: or this would have to wait for its lease of 15 s.
    await vi.waitFor(async () => {
      expect((await post(url, callback)).body).toBe('{"outcome":"processed"}');
    });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test('an outage between claim and settle gets 200, and the success is recorded when Redis is back', async () => {
    let start = (): Promise<unknown> => Promise.resolve();
    const onSuccess = vi.fn(async () => {
      start = await stopRedis();
    });
    const { url, outcomes } = await merchant(onSuccess);
    const callback = transferSucceeded();
    expect(await post(url, callback)).toMatchObject({ status: 200, body: '{"outcome":"processed"}' });
    expect(outcomes).toMatchObject([{ outcome: 'processed', overlapped: false, error: { code: 'STORE_TIMEOUT' } }]);

    await start();
    await vi.waitFor(async () => {
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  });

  test('an outage after a handler has failed gets 500, and the claim is free when Redis is back', async () => {
    let start = (): Promise<unknown> => Promise.resolve();
    const onSuccess = vi.fn().mockImplementationOnce(async () => {
      start = await stopRedis();
      throw new Error('no');
    });
    const { url } = await merchant(onSuccess);
    const callback = transferSucceeded();
    expect((await post(url, callback)).status).toBe(500);
    await start();
    await vi.waitFor(async () => {
      expect((await post(url, callback)).body).toBe('{"outcome":"processed"}');
    });
    expect(onSuccess).toHaveBeenCalledTimes(2);
  });
});

test.each([
  ['to the claim', 'claimed '],
  ['to the settling', 'handled '],
])(
  'a lost reply %s, which ioredis sends again, runs the handler once and reports no overlap',
  async (_which, value) => {
    const proxy = await startLossyProxy(server.port);
    closing.push(() => proxy.close());
    const onSuccess = vi.fn();
    // Time enough to connect again on a busy machine.
    const deadlines = { storeTimeoutMs: 9_000, leaseMs: 29_000 };
    const { url, outcomes } = await merchant(onSuccess, clientOf(proxy.port), deadlines);
    const callback = transferSucceeded();
    const before = await server.calls('set');
    proxy.lose('reply', value);
    expect(await post(url, callback)).toMatchObject({ status: 200, body: '{"outcome":"processed"}' });
    expect(proxy.lost()).toBe(1);
    expect((await server.calls('set')) - before).toBe(3);
    expect(outcomes).toMatchObject([{ outcome: 'processed', overlapped: false }]);
    expect(outcomes[0]).not.toHaveProperty('error');
    expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    expect(onSuccess).toHaveBeenCalledTimes(1);
  },
);
