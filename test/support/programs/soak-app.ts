/**
 * The app of the soak, as a separate process: the router on a real Redis. Its handlers count their runs in Redis, and
 * so does `onOutcome`, so that nothing but a leak makes this process grow. Asked over IPC: `size` and `end`.
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Redis } from 'ioredis';
import {
  redisStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  type TransferCallback,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { readAppOptions } from './app.js';
import { collectGarbage } from '../helpers/runtime.js';

/** What a leak of the app of the soak would make grow. */
export interface SoakSize {
  /** Heap in use after garbage collection. */
  readonly heapBytes: number;
  readonly sockets: number;
  readonly timers: number;
  /** Listeners on the process, the server and the Redis client. */
  readonly listeners: number;
}

const { redisUrl } = readAppOptions() as { redisUrl: string };
const redis = new Redis(redisUrl);
let recording = 0;

/** Fails as often as the external id asks for after `-fails-`, then succeeds. */
async function handle({ data }: TransferCallback): Promise<void> {
  const run = await redis.hincrby('runs', data.id, 1);
  if (run <= Number(data.externalId.split('-fails-')[1])) throw new Error('The handler was told to fail.');
}

async function recordOutcome(event: TransferCallbackOutcome): Promise<void> {
  recording += 1;
  await redis.hincrby(event.outcome, 'id' in event ? (event.id ?? 'none') : 'none', 1);
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
process.send?.((server.address() as AddressInfo).port);

process.on('message', (question: 'size' | 'end') => {
  void (question === 'size' ? sendSize() : end());
});
process.on('disconnect', () => {
  if (server.listening) process.exit();
});

/** Sends what a leak would make grow, without what garbage collection would free. */
async function sendSize(): Promise<void> {
  while (recording > 0) await new Promise(setImmediate);
  collectGarbage();
  // What the first collection has finalised.
  await new Promise(setImmediate);
  collectGarbage();
  const resources = process.getActiveResourcesInfo();
  const emitters = [process, server, redis];
  const listeners = emitters.flatMap((emitter) =>
    emitter.eventNames().map((name) => emitter.listenerCount(name as string)),
  );
  process.send?.({
    heapBytes: process.memoryUsage().heapUsed,
    sockets: resources.filter((name) => name === 'TCPSocketWrap').length,
    timers: resources.filter((name) => name === 'Timeout').length,
    listeners: listeners.reduce((sum, count) => sum + count, 0),
  } satisfies SoakSize);
}

/** Closes everything. The process then ends by itself, unless a timer or a socket was leaked. */
async function end(): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await receiver.close();
  await closed;
  await redis.quit();
  process.disconnect();
}
