import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  redisStore,
  transferCallbackListener,
  type ReceiverOptions,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { collectGarbage } from '../support/helpers/runtime.js';
import { post } from '../support/helpers/post.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { connectNodeRedis, ioredisFamily } from '../support/servers/redis-clients.js';
import type { RedisServer } from '../support/servers/redis.js';
import { connectForTest, startRedisForTest } from '../support/servers/redis-for-file.js';

const storeTimeoutMs = 400;

let server: RedisServer;
beforeEach(async () => {
  server = await startRedisForTest({ persistent: true });
});

const reconnecting = { retryStrategy: () => 50, maxRetriesPerRequest: null };
const clientOf = (port = server.port) => connectForTest(port, reconnecting);

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
  const url = await serveForTest(transferCallbackListener({ receiver }));
  onTestFinished(() => receiver.close({ timeoutMs: 0 }).then(() => undefined));
  await client.ping();
  return { url, outcomes };
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

describe.each(Object.entries(stop))('while Redis %s', (_name, stopRedis) => {
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
    onTestFinished(() => proxy.close());
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

test.each(Object.entries(ioredisFamily))(
  'claims that %s sends after an outage, although they have timed out, do not block the fourth attempt',
  async (_name, connect) => {
    // BullMQ demands `maxRetriesPerRequest: null`: a command stays in the queue for as long as Redis is down.
    const client = connect(server.port, { commandTimeout: 1_000, ...reconnecting });
    client.on('error', () => undefined);
    onTestFinished(() => {
      client.disconnect();
    });
    const onSuccess = vi.fn();
    const receiver = receiverOf({ store: redisStore(client), inFlightWaitMs: 500, onSuccess });
    const callback = transferSucceeded();
    await client.ping();

    await server.kill();
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      expect(await receiver.receive(callback)).toMatchObject({
        outcome: 'store_unavailable',
        error: { message: 'Command timed out' },
      });
    }
    await server.restart();
    await vi.waitUntil(() => client.status === 'ready');

    // The claims of the first three would stand for 15 s.
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
    expect(onSuccess).toHaveBeenCalledTimes(1);
  },
);

test('a claim whose reply node-redis has lost does not block the next delivery', async () => {
  const proxy = await startLossyProxy(server.port);
  onTestFinished(() => proxy.close());
  const { client, close } = await connectNodeRedis(proxy.port);
  onTestFinished(close);
  const onSuccess = vi.fn();
  const receiver = receiverOf({ store: redisStore(client), inFlightWaitMs: 0, onSuccess });
  const callback = transferSucceeded();

  proxy.lose('reply', 'claimed ');
  expect(await receiver.receive(callback)).toMatchObject({
    outcome: 'store_unavailable',
    error: { message: 'Socket closed unexpectedly' },
  });
  expect(proxy.lost()).toBe(1);

  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  expect(onSuccess).toHaveBeenCalledTimes(1);
});

test('a success that is still to be recorded while Redis is down keeps no callback', async () => {
  const [megabyte, deliveries] = [1_000_000, 40];
  const readHeapBytes = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  /** A callback of a megabyte, in a string of its own. */
  const makeLarge = (): unknown => {
    const { event, data } = transferSucceeded();
    return { event, data: { ...data, note: Buffer.alloc(megabyte, data.id).toString('latin1') } };
  };
  const client = clientOf();
  const isDown = later();
  const onSuccess = vi.fn(() => isDown.promise);
  const rests: Promise<void>[] = [];
  const waitUntil = (rest: Promise<void>) => void rests.push(rest);
  const receiver = receiverOf({ store: redisStore(client), onSuccess });
  await client.ping();
  const before = readHeapBytes();
  const outcomes = Promise.all(Array.from({ length: deliveries }, () => receiver.receive(makeLarge(), { waitUntil })));
  await vi.waitUntil(() => onSuccess.mock.calls.length === deliveries);
  expect(readHeapBytes() - before).toBeGreaterThan((deliveries / 2) * megabyte);
  // A mock keeps what it was called with.
  onSuccess.mockClear();
  await server.kill();
  isDown.resolve();
  for (const outcome of await outcomes)
    expect(outcome).toMatchObject({ outcome: 'processed', error: expect.anything() as unknown });
  // What has just resolved is released a few turns later.
  await vi.waitFor(() => {
    expect(readHeapBytes() - before).toBeLessThan((deliveries / 4) * megabyte);
  });
  // They are still to be recorded, and are when Redis is back.
  await server.restart();
  await Promise.all(rests);
  expect(await receiver.close()).toMatchObject({ unfinished: 0 });
});
