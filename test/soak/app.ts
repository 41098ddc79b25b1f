/**
 * The app under soak, as a separate process: the router on a real Redis. Its handlers write down in Redis how often
 * they ran, and so does `onOutcome`, so that nothing but a leak makes this process grow.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import express from 'express';
import { Redis } from 'ioredis';
import {
  redisStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  type TransferCallback,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { failuresIn, type AppMessage, type AppQuestion } from './messages.js';

const { redisUrl } = JSON.parse(process.env.SOAK ?? '{}') as { redisUrl: string };
const redis = new Redis(redisUrl);
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
let recording = 0;
let closing = false;

/** Fails as often as the callback asks for, then succeeds. */
async function handle({ data }: TransferCallback): Promise<void> {
  const run = await redis.hincrby('runs', data.id, 1);
  if (run <= failuresIn(data.externalId)) throw new Error('The handler was told to fail.');
}

async function recordOutcome(event: TransferCallbackOutcome): Promise<void> {
  recording += 1;
  await redis.hincrby(`outcome:${event.outcome}`, 'id' in event ? (event.id ?? 'none') : 'none', 1);
  recording -= 1;
}

const receiver = transferCallbackReceiver({
  store: redisStore(redis),
  onSuccess: handle,
  onFailed: handle,
  onOutcome: recordOutcome,
  logger: false,
  // Longer than any stall of a busy machine: what is looked for is leaks and losses, not late replies.
  leaseMs: 29_000,
  storeTimeoutMs: 9_000,
  handlerTimeoutMs: 60_000,
  inFlightWaitMs: 30_000,
});
const server = express().use('/callbacks', transferCallbackRouter({ receiver })).listen(0, '127.0.0.1');
await once(server, 'listening');
// A stall of the load must not cost it its connections.
server.keepAliveTimeout = 60_000;
send({ port: (server.address() as AddressInfo).port });

process.on('message', (question: AppQuestion) => {
  void (question === 'size' ? measureSize() : end());
});
process.on('disconnect', () => {
  if (!closing) process.exit();
});

function send(message: AppMessage): void {
  process.send?.(message);
}

/** Sends what a leak would make grow, without what garbage collection would free. */
async function measureSize(): Promise<void> {
  while (recording > 0) await new Promise(setImmediate);
  collectGarbage();
  // What the first collection has finalised.
  await new Promise(setImmediate);
  collectGarbage();
  const connections = await new Promise<number>((resolve) => {
    server.getConnections((_error, count) => {
      resolve(count);
    });
  });
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) resources[name] = (resources[name] ?? 0) + 1;
  const emitters = [process, server, redis];
  const listeners = emitters
    .flatMap((emitter) => emitter.eventNames().map((name) => emitter.listenerCount(name as string)))
    .reduce((sum, count) => sum + count, 0);
  send({ size: { heapBytes: process.memoryUsage().heapUsed, connections, resources, listeners } });
}

/** Closes everything. The process then ends by itself, unless a timer or a socket was leaked. */
async function end(): Promise<void> {
  closing = true;
  const closed = once(server, 'close');
  server.close();
  await receiver.close();
  await closed;
  await redis.quit();
  process.disconnect();
}
