import { expect, test, vi } from 'vitest';
import { redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { collectGarbage } from '../support/helpers/collect-garbage.js';
import { connectForTest, startRedisForTest } from '../support/servers/redis-for-file.js';

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const megabyte = 1_000_000;
const deliveries = 40;

/** A callback of a megabyte, in a string of its own. */
function largeCallback(): unknown {
  const { event, data } = transferSucceeded();
  return { event, data: { ...data, note: Buffer.alloc(megabyte, data.id).toString('latin1') } };
}

test('a success that is still to be recorded while Redis is down keeps no callback', async () => {
  const server = await startRedisForTest({ persistent: true });
  const client = connectForTest(server.port, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  const isDown = later();
  const handled = vi.fn();
  const rests: Promise<void>[] = [];
  const receiver = receiverOf({
    store: redisStore(client),
    async onSuccess() {
      handled();
      await isDown.promise;
    },
  });
  await client.ping();
  const before = heapBytes();
  const outcomes = Promise.all(
    Array.from({ length: deliveries }, () =>
      receiver.receive(largeCallback(), {
        waitUntil(rest) {
          rests.push(rest);
        },
      }),
    ),
  );
  await vi.waitUntil(() => handled.mock.calls.length === deliveries);
  expect(heapBytes() - before).toBeGreaterThan((deliveries / 2) * megabyte);
  await server.kill();
  isDown.resolve();
  for (const outcome of await outcomes)
    expect(outcome).toMatchObject({ outcome: 'processed', error: expect.anything() as unknown });
  // What has just resolved is released a few turns later.
  await vi.waitFor(() => {
    expect(heapBytes() - before).toBeLessThan((deliveries / 4) * megabyte);
  });
  // They are still to be recorded, and are when Redis is back.
  await server.restart();
  await Promise.all(rests);
  expect(await receiver.close()).toMatchObject({ unfinished: 0 });
});
