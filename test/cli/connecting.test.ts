import { expect, test } from 'vitest';
import { folderOf, inspect, startApp } from './app-support.js';

// ioredis without its offline queue rejects each command until it is connected, and CommonJS cannot await that.

test('inspect waits for a store that is connecting', async () => {
  const app = await startApp();
  const id = await app.transfer('payout-1');
  const config = app.config.replace(
    /new Redis\(('[^']*')\)/,
    `((redis) => (setTimeout(() => redis.connect(), 1_000), redis))(new Redis($1, { lazyConnect: true, enableOfflineQueue: false }))`,
  );
  expect(config).not.toBe(app.config);
  const { code, out } = await inspect([id], { cwd: await folderOf(config), terminal: true });
  expect(out).toContain('SUCCESS');
  expect([code, out.includes('undecided')]).toEqual([0, false]);
});
