import { expect, onTestFinished, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../core/support.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { connectNodeRedis, ioredisFamily } from '../support/servers/redis-clients.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

test.each(Object.entries(ioredisFamily))(
  'claims that %s sends after an outage, although they have timed out, do not block the fourth attempt',
  async (_name, connect) => {
    const server = await startRedisForTest();
    // BullMQ demands `maxRetriesPerRequest: null`: a command stays in the queue for as long as Redis is down.
    const client = connect(server.port, {
      commandTimeout: 1_000,
      maxRetriesPerRequest: null,
      retryStrategy: () => 50,
    });
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
  const server = await startRedisForTest();
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
