import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'redis';
import { expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore, redisStore } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf, storeWith } from '../core/support.js';
import { blockEventLoop } from '../support/helpers/runtime.js';
import { buildApp } from '../support/programs/child.js';
import { startRedisForFile } from '../support/servers/redis-for-file.js';

const own = startRedisForFile();

test('a process that reads the reply to its claim too late runs no callback that another has handled', async () => {
  const onSuccess = vi.fn();
  const receiver = receiverOf({ store: redisStore(own.redis), onSuccess, leaseMs: 1_000, storeTimeoutMs: 300 });
  const callback = transferSucceeded();
  const delivery = receiver.receive(callback);
  // The command leaves with the next turn of the event loop. Then another process runs while this one is stopped.
  await new Promise((resolve) => setImmediate(resolve));
  const printed = execFileSync(process.execPath, [buildApp('takeover-app.ts')], {
    env: { ...process.env, APP_OPTIONS: JSON.stringify({ url: own.server.url, callback }) },
    timeout: 50_000,
  });
  expect(String(printed)).toBe('processed');
  expect(await delivery).toMatchObject({ outcome: 'duplicate' });
  // Its own claim had been granted: it was renewed, and refused.
  expect(await own.server.calls('eval')).toBe(1);
  expect(onSuccess).not.toHaveBeenCalled();
});

test('a command that the client could not send while the event loop was blocked is not late', async () => {
  const client = await createClient({ url: own.server.url }).connect();
  onTestFinished(() => {
    client.destroy();
  });
  const receiver = receiverOf({ store: redisStore(client) });
  const deliveries = Array.from({ length: 100 }, () => receiver.receive(transferSucceeded()));
  // node-redis sends the commands at the end of this turn. The deadline of a call of the store, 2 s, has passed by
  // then.
  blockEventLoop(2_200);
  const outcomes = await Promise.all(deliveries);
  expect(outcomes.filter(({ outcome }) => outcome === 'processed')).toHaveLength(100);
});

test.each([470, 500, 545, 900])(
  'a store that needs 30 ms has them although the event loop was blocked for %d of its 500 ms',
  async (blockedMs) => {
    const memory = memoryStore();
    const store = storeWith({
      async claim(key, request) {
        // The first pause ends with the block, the second one after it.
        await pause(1);
        await pause(30);
        return memory.claim(key, request);
      },
    });
    const delivery = receiverOf({ store, storeTimeoutMs: 500 }).receive(transferSucceeded());
    blockEventLoop(blockedMs);
    expect(await delivery).toMatchObject({ outcome: 'processed' });
  },
);

test('2 000 copies of one callback cost Redis some dozens of commands', async () => {
  const commands = async (): Promise<number> => (await own.server.calls('set')) + (await own.server.calls('get'));
  const work = later();
  const [near, far] = ['this process', 'another'].map(() =>
    receiverOf({ store: redisStore(own.redis), onSuccess: () => work.promise, inFlightWaitMs: 40_000 }),
  );
  const callback = transferSucceeded();
  const before = await commands();
  const copies = [near, far].flatMap((receiver) =>
    Array.from({ length: 1_000 }, () => receiver?.receive(callback) ?? expect.fail()),
  );
  await vi.waitUntil(async () => (await own.redis.exists(`transfer-callbacks:${callback.data.id}`)) === 1);
  // Each of them waits for two seconds: the commands of that time are what is counted.
  await pause(2_000);
  work.resolve();
  const outcomes = (await Promise.all(copies)).map(({ outcome }) => outcome);
  expect(outcomes.filter((outcome) => outcome === 'processed')).toHaveLength(1);
  expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(1_999);
  expect((await commands()) - before).toBeLessThan(50);
});
