/** A merchant's app as a separate process, told by its parent what its handlers do. See merchant.ts. */
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

const { redisUrl, handlersWait, closeTimeoutMs, ...options } = JSON.parse(
  process.env.MERCHANT ?? '{}',
) as MerchantOptions;
const tellings = new EventEmitter();
process.on('message', ({ id, how }: Telling) => tellings.emit(id, how));

function say(message: MerchantMessage): void {
  process.send?.(message);
}

async function handle({ data }: TransferCallback, { signal }: HandlerContext): Promise<void> {
  signal.addEventListener('abort', () => {
    say({ aborted: data.id, code: (signal.reason as { code: string }).code });
  });
  const told = once(tellings, data.id);
  say({ handling: data.id });
  if (handlersWait !== true) return;
  const [how] = (await told) as [Telling['how']];
  if (how === 'fail') throw new Error('The handler was told to fail.');
}

const redis = new Redis(redisUrl);
const receiver = transferCallbackReceiver({
  ...options,
  store: redisStore(redis),
  onSuccess: handle,
  onFailed: handle,
  logger: false,
});
const server = express().use(transferCallbackRouter({ receiver })).listen(0, '127.0.0.1');
await once(server, 'listening');
say({ port: (server.address() as AddressInfo).port });

const closing = closeOnSignal(server, receiver, { timeoutMs: closeTimeoutMs });
process.once('SIGTERM', () => {
  say({ closing: true });
});
const { unfinished } = await closing;
say({ unfinished });
await redis.quit();
process.exit(unfinished === 0 ? 0 : 1);
