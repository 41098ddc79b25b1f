import { expect, test } from 'vitest';
import { create, startMerchant, startSandbox } from './support.js';

/** Resolves `all` when `count` have arrived, so that each of them waits for the others. */
function barrier(count: number) {
  let arrived = 0;
  let open: () => void = () => undefined;
  const all = new Promise<void>((resolve) => (open = resolve));
  return {
    arrive(): Promise<void> {
      arrived += 1;
      if (arrived === count) open();
      return all;
    },
    open: () => {
      open();
    },
    arrived: () => arrived,
  };
}

async function createMany(sandbox: Awaited<ReturnType<typeof startSandbox>>, count: number, callbackUrl: string) {
  for (let made = 0; made < count; made += 50) {
    await Promise.all(Array.from({ length: Math.min(50, count - made) }, () => create(sandbox, { callbackUrl })));
  }
}

test('at most 100 attempts run at one merchant concurrently, and the others wait', async () => {
  let underWay = 0;
  let most = 0;
  const together = barrier(100);
  const { url } = await startMerchant(async (_received, _count, response) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await together.arrive();
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
  const never = barrier(Infinity);
  const hanging = await startMerchant(async (_received, _count, response) => {
    await never.arrive();
    response.end();
  });
  const other = await startMerchant();
  const sandbox = await startSandbox({ attemptTimeoutMs: 60_000 });
  await createMany(sandbox, 150, hanging.url);
  await createMany(sandbox, 5, other.url);
  await expect.poll(() => [never.arrived(), other.received.length]).toEqual([100, 5]);
  never.open();
  await expect.poll(() => hanging.received).toHaveLength(150);
});
