// Runs the lines that docs/stores.md shows for Redis, as they are, in a process that serves callbacks.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { expect, onTestFinished, test, vi } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { hasEnded, kill, tied } from '../support/programs/child.js';
import { post } from '../support/helpers/post.js';
import { startLossyProxy } from '../support/servers/lossy-proxy.js';
import { startRedisForTest } from '../support/servers/redis-for-file.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(new URL('../../docs/stores.md', import.meta.url), 'utf8');
const lines = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].find(([, code = '']) => code.includes("from 'redis'"))?.[1];

/** Serves callbacks at /ioredis and /node-redis, each on the store that docs/stores.md makes of that client. */
const serveStores = `
import { createServer } from 'node:http';
import { transferCallbackListener } from 'transfer-callbacks';
const options = { onSuccess() {}, onFailed() {}, logger: false };
const listeners = {
  '/ioredis': transferCallbackListener({ ...options, store }),
  '/node-redis': transferCallbackListener({ ...options, store: sameStore }),
};
const server = createServer((request, response) => listeners[request.url](request, response));
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));
`;

interface App {
  readonly child: ChildProcess;
  readonly url: string;
}

async function runPage(redisPort: number): Promise<App> {
  const code = (lines ?? expect.fail('docs/stores.md shows no lines for Redis.')).replaceAll(':6379', `:${redisPort}`);
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const child = tied(
    spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', outputText + serveStores], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  );
  onTestFinished(() => kill(child));
  const ended = once(child, 'exit').then(([exitCode]) => expect.fail(`It ended with ${exitCode}.`));
  const [url] = (await Promise.race([once(createInterface(child.stdout), 'line'), ended])) as [string];
  ended.catch(() => undefined);
  return { child, url };
}

async function untilProcessed(url: string): Promise<void> {
  const callback = transferSucceeded();
  await vi.waitFor(async () => {
    expect(await post(url, callback)).toMatchObject({ status: 200 });
  });
}

test('the app of the README survives a restart of Redis, and processes callbacks after it', async () => {
  const server = await startRedisForTest({ persistent: true });
  const { child, url } = await runPage(server.port);
  for (const path of ['/ioredis', '/node-redis']) await untilProcessed(url + path);

  await server.kill();
  for (const path of ['/ioredis', '/node-redis']) {
    expect(await post(url + path, transferSucceeded())).toMatchObject({ status: 503 });
  }
  await server.restart();
  for (const path of ['/ioredis', '/node-redis']) await untilProcessed(url + path);
  expect(hasEnded(child)).toBe(false);
});

test('ioredis with the options of the README finds the new primary when two servers swap roles behind one address', async () => {
  const [one, other] = await Promise.all([startRedisForTest(), startRedisForTest()]);
  await other.command('replicaof', '127.0.0.1', one.port);
  const proxy = await startLossyProxy(one.port);
  onTestFinished(() => proxy.close());
  const { url } = await runPage(proxy.port);
  await untilProcessed(`${url}/ioredis`);
  const handled = transferSucceeded();
  expect(await post(`${url}/ioredis`, handled)).toMatchObject({ body: '{"outcome":"processed"}' });
  await vi.waitUntil(async () => (await one.command('wait', 1, 1_000)) === 1);

  await other.command('replicaof', 'no', 'one');
  await one.command('replicaof', '127.0.0.1', other.port);
  proxy.pointTo(other.port);
  await untilProcessed(`${url}/ioredis`);
  expect(await post(`${url}/ioredis`, handled)).toMatchObject({ body: '{"outcome":"duplicate"}' });
});
