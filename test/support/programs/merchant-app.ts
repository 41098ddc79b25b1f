/**
 * A merchant's app as a separate process, told by its parent how its handlers end. It closes on a signal. See
 * merchant.ts.
 */
import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Redis } from 'ioredis';
import {
  closeOnSignal,
  redisStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import type { MerchantMessage, MerchantOptions, Telling } from './merchant.js';
import { readAppOptions } from './app.js';

const { redisUrl, handlersWait, ...options } = readAppOptions() as MerchantOptions;
const tellings = new EventEmitter();
process.on('message', ({ id, how }: Telling) => tellings.emit(id, how));

function say(message: MerchantMessage): void {
  process.send?.(message);
}

async function waitFor(id: string): Promise<void> {
  const told = once(tellings, id);
  say({ handling: id });
  if (handlersWait !== true) return;
  const [how] = (await told) as [Telling['how']];
  if (how === 'fail') throw new Error('The handler was told to fail.');
}

async function handle({ data }: TransferCallback, { signal }: HandlerContext): Promise<void> {
  signal.addEventListener('abort', () => {
    say({ aborted: data.id, code: (signal.reason as { code: string }).code });
  });
  await waitFor(data.id);
}

const redis = new Redis(redisUrl);
const store = redisStore(redis);
const receiver = transferCallbackReceiver({ ...options, store, onSuccess: handle, onFailed: handle, logger: false });

const app = express();
app.use(transferCallbackRouter({ receiver }));
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');

const closed = closeOnSignal(server, receiver);
process.once('SIGTERM', () => {
  say({ closing: true });
});
say({ port: (server.address() as AddressInfo).port });
await closed;
await redis.quit();
// It does not exit: what still kept the process alive would show.
process.disconnect();
