import { expect, test } from 'vitest';
import { later } from '../../../test/core/support.js';
import { create, startMerchant, startSandbox } from './support.js';

async function createMany(sandbox: Awaited<ReturnType<typeof startSandbox>>, count: number, callbackUrl: string) {
  for (let made = 0; made < count; made += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - made) }, () => create(sandbox, { callbackUrl })));
  }
}

test('at most 100 attempts run at one merchant concurrently, and the others wait', async () => {
  let underWay = 0;
  let most = 0;
  const { promise: opened, resolve: open } = later();
  const { url } = await startMerchant(async (_received, count, response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    if (count === 100) open();
    await opened;
    underWay -= 1;
    response.end();
  });
  const sandbox = await startSandbox({ clock: 'manual' });
  await createMany(sandbox, 250, url);
  await sandbox.advance(1_000);
  expect(most).toBe(100);
  expect(sandbox.attempts.filter(({ response }) => 'error' in response)).toEqual([]);
  expect(sandbox.attempts).toHaveLength(250);
});

test('a merchant that hangs does not delay the callbacks of another', async () => {
  const { promise: opened, resolve: open } = later();
  const hanging = await startMerchant(async (_received, _count, response) => {
    await opened;
    response.end();
  });
  const other = await startMerchant();
  const sandbox = await startSandbox({ attemptTimeoutMs: 60_000 });
  await createMany(sandbox, 150, hanging.url);
  await createMany(sandbox, 5, other.url);
  await expect.poll(() => [hanging.received.length, other.received.length]).toEqual([100, 5]);
  open();
  await expect.poll(() => hanging.received).toHaveLength(150);
});
