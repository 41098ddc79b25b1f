import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { memoryStore, redisStore } from 'transfer-callbacks';
import { transferClient } from 'transfer-callbacks/client';
import { transferSandbox } from 'transfer-callbacks/sandbox';
import { startMerchant } from './demo/merchant.js';
import { isAsDesigned, observe, scenes, type Observed } from './demo/scenes.js';
import { header, paint, row, summary } from './demo/table.js';

const redis = process.env.REDIS_URL ? await connect(process.env.REDIS_URL) : undefined;
const store = redis === undefined ? memoryStore() : redisStore(redis, { prefix: 'transfer-callbacks:demo:' });
const merchant = await startMerchant(store);
// Use a new seed for each run: your Redis still remembers the ids of the last run.
const seed = Math.floor(Math.random() * 2 ** 32);
const service = await transferSandbox({ speed: 1_000, finalAfterMs: 20_000, seed });
const client = transferClient({ baseUrl: service.baseUrl, ...service.keys.valid });

console.log(`
A merchant creates transfers at a sandbox of the service and receives their
callbacks, with claims in ${redis === undefined ? 'memory' : 'Redis'}. The service makes up to 4 attempts; the pauses
between them, of 30, 60 and 120 s, take as many milliseconds here. Below: what
each attempt got, what the handlers did, how each delivery ended.

${header()}`);
const startedAt = performance.now();
let failures = 0;
const all: Observed[] = [];
for (const scene of scenes) {
  const observed = await observe(scene, { merchant, service, client });
  all.push(observed);
  console.log(row(scene, observed));
  if (!isAsDesigned(scene, observed)) failures += 1;
}
const tookMs = Math.round(performance.now() - startedAt);
console.log(`\n${summary(scenes, all)}`);

if (failures === 0) {
  console.log(`
${paint('green', `All ${scenes.length} are as designed`)}, in ${tookMs} ms. What was acknowledged had been handled,
once, also after a process was killed in its handler. Without the token nothing
was handled. Reconciliation found the outcome of which no callback came: silence
is no failure.

  npm run demo -- --open   these transfers in the console, to resend and forge
  docs/console.md          the sandbox and its console with an app of yours
  README.md                the quick start, and what to read before production
`);
} else {
  console.log(`\n${paint('red', `${failures} of ${scenes.length} are not as designed.`)}\n`);
  process.exitCode = 1;
}

if (process.argv.includes('--open')) {
  const url = String(service.consoleUrl);
  console.log(`In the browser, until Ctrl+C: ${url}\n`);
  const opener = { darwin: 'open', win32: 'explorer' }[process.platform as string] ?? 'xdg-open';
  spawn(opener, [url], { stdio: 'ignore' }).on('error', () => {
    console.log('No browser was opened. Open the address by hand.');
  });
  await once(process, 'SIGINT');
}
merchant.close();
await service.close();
await redis?.quit();

/** Connects once. Without Redis the demonstration ends immediately. */
async function connect(url: string): Promise<Redis> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  // The rejection of `connect` names no cause. This event is emitted first, and has it.
  client.on('error', (error) => {
    console.error('REDIS_URL leads to no Redis:', error);
    process.exit(1);
  });
  await client.connect();
  return client;
}
