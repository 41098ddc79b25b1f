import { Redis } from 'ioredis';
import { memoryStore, redisStore } from 'transfer-callbacks';
import { startMerchant } from './demo/merchant.js';
import { isAsDesigned, observe, scenes } from './demo/scenes.js';
import { header, paint, row } from './demo/table.js';

const redis = process.env.REDIS_URL ? await connect(process.env.REDIS_URL) : undefined;
const store = redis === undefined ? memoryStore() : redisStore(redis, { prefix: 'transfer-callbacks:demo:' });
const merchant = await startMerchant(store);

console.log(`
A service delivers callbacks to a merchant's app that keeps its claims in ${redis === undefined ? 'memory' : 'Redis'}. It makes up
to 4 attempts; the pauses between them, of 30, 60 and 120 s, take as many milliseconds here.

${header()}`);

const startedAt = performance.now();
let failures = 0;
for (const scene of scenes) {
  const observed = await observe(scene, merchant);
  console.log(row(scene, observed));
  if (!isAsDesigned(scene, observed)) failures += 1;
}
const tookMs = Math.round(performance.now() - startedAt);

merchant.close();
await redis?.quit();

if (failures === 0) {
  console.log(`
${paint('green', `All ${scenes.length} are as designed`)}, in ${tookMs} ms. What was acknowledged had been handled, once; and nobody
was believed without the token.
`);
} else {
  console.log(`\n${paint('red', `${failures} of ${scenes.length} are not as designed.`)}\n`);
  process.exitCode = 1;
}

/** Connects once: without its Redis the demonstration ends at once. */
async function connect(url: string): Promise<Redis> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  // The rejection of `connect` says only that the connection is closed; the cause comes here, before it.
  client.on('error', (error) => {
    console.error('REDIS_URL leads to no Redis:', error);
    process.exit(1);
  });
  await client.connect();
  return client;
}
