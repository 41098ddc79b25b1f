// Runs the app that docs/stores.md shows for Redis, as it is, and the example on node-redis, through faults of Redis.
import { spawn } from 'node:child_process';
import ts from 'typescript';
import { expect, onTestFinished, test, vi } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { findBlocks, findPage, root } from '../docs/pages.js';
import { serve } from '../examples/support.js';
import { hasEnded, kill, tied } from '../support/programs/child.js';
import { post } from '../support/helpers/post.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { freePort, isListening } from '../support/servers/port.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

const app = findBlocks(findPage('docs/stores.md'), 'ts').find(({ code }) => code.includes("from 'ioredis'"));
const CALLBACK_SECRET = 'a-secret-of-the-page';

/** Starts the app of the page. Resolves when it listens. */
async function runPage(redisPort: number) {
  const { code } = app ?? expect.fail('docs/stores.md shows no app on ioredis.');
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const port = await freePort();
  const env = { ...process.env, REDIS_URL: `redis://127.0.0.1:${redisPort}`, PORT: String(port), CALLBACK_SECRET };
  const args = ['--import', 'tsx', '--input-type=module', '--eval', outputText];
  const child = tied(spawn(process.execPath, args, { cwd: root, env, stdio: 'ignore' }));
  onTestFinished(() => kill(child));
  await vi.waitUntil(async () => hasEnded(child) || (await isListening(port)), { timeout: 20_000 });
  expect(hasEnded(child)).toBe(false);
  return { child, url: `http://127.0.0.1:${port}/callbacks/transfers/${CALLBACK_SECRET}` };
}

async function untilProcessed(url: string): Promise<void> {
  const callback = transferSucceeded();
  await vi.waitFor(async () => {
    expect(await post(url, callback)).toMatchObject({ status: 200 });
  });
}

test('the apps on ioredis and on node-redis survive a restart of Redis, and process callbacks after it', async () => {
  const server = await startRedisForTest({ persistent: true });
  const page = await runPage(server.port);
  const example = await serve('node-redis.ts', { REDIS_URL: `redis://127.0.0.1:${server.port}` });
  const urls = [page.url, example.url];
  for (const url of urls) await untilProcessed(url);

  await server.kill();
  for (const url of urls) expect(await post(url, transferSucceeded())).toMatchObject({ status: 503 });
  await server.restart();
  for (const url of urls) await untilProcessed(url);
  expect(hasEnded(page.child)).toBe(false);
});

test('ioredis with the options of docs/stores.md finds the new primary when two servers swap roles behind one address', async () => {
  const [one, other] = await Promise.all([startRedisForTest(), startRedisForTest()]);
  await other.command('replicaof', '127.0.0.1', one.port);
  const proxy = await startLossyProxy(one.port);
  onTestFinished(() => proxy.close());
  const { url } = await runPage(proxy.port);
  await untilProcessed(url);
  const handled = transferSucceeded();
  expect(await post(url, handled)).toMatchObject({ body: '{"outcome":"processed"}' });
  await vi.waitUntil(async () => (await one.command('wait', 1, 1_000)) === 1);

  await other.command('replicaof', 'no', 'one');
  await one.command('replicaof', '127.0.0.1', other.port);
  proxy.pointTo(other.port);
  await untilProcessed(url);
  expect(await post(url, handled)).toMatchObject({ body: '{"outcome":"duplicate"}' });
});
