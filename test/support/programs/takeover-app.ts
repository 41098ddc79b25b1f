/**
 * A worker as a separate process, that takes over one callback: waits until the claim on it has lapsed, receives the
 * callback itself, and prints the outcome. Meanwhile its parent, whose claim it was, is held up: see held-up.test.ts.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { redisStore, transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { readAppOptions } from './app.js';

const { url, callback } = readAppOptions() as { url: string; callback: TransferCallback };
const redis = new Redis(url);
const key = `transfer-callbacks:${callback.data.id}`;
const giveUpAt = performance.now() + 40_000;

while ((await redis.exists(key)) === 1) {
  if (performance.now() > giveUpAt) throw new Error('The claim did not lapse.');
  await pause(5);
}
const receiver = transferCallbackReceiver({
  store: redisStore(redis),
  onSuccess: () => undefined,
  onFailed: () => undefined,
  logger: false,
});
const { outcome } = await receiver.receive(callback);
redis.disconnect();
process.stdout.write(outcome);
