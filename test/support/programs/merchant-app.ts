/**
 * A merchant's app as a separate process, told by its parent how its handlers and its checkout end. It closes on a
 * signal. See merchant.ts.
 */
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Redis } from 'ioredis';
import {
  closeOnSignal,
  memoryStore,
  redisStore,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
  type HandlerContext,
  type TransferCallback,
} from 'transfer-callbacks';
import type { MerchantMessage, MerchantOptions, Telling } from './merchant.js';
import { readAppOptions } from './app.js';

const { redisUrl, handlersWait, closeTimeoutMs, isSignalledTwice, isHttp2, ...options } =
  readAppOptions() as MerchantOptions;
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

const redis = redisUrl === undefined ? undefined : new Redis(redisUrl);
const store = redis === undefined ? memoryStore() : redisStore(redis);
const receiver = transferCallbackReceiver({ ...options, store, onSuccess: handle, onFailed: handle, logger: false });

const app = express();
app.get('/checkout', async (_request, response) => {
  await waitFor('checkout');
  response.send('paid');
});
app.get('/stream', (_request, response) => {
  openStream(response);
});
app.use(transferCallbackRouter({ receiver }));

function openStream(response: ServerResponse | Http2ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  (response as ServerResponse).write('data: 1\n\n');
  say({ handling: 'stream' });
}

function serve() {
  if (isHttp2) {
    const listener = transferCallbackListener({ receiver });
    const http2 = createServer((request, response) => {
      if (request.url === '/stream') openStream(response);
      else listener(request, response);
    });
    return http2.listen(0, '127.0.0.1');
  }
  // As behind a load balancer that keeps its connections.
  return Object.assign(app.listen(0, '127.0.0.1'), { keepAliveTimeout: 600_000 });
}

const server = serve();
await once(server, 'listening');

let startedAt = NaN;
process.once('SIGTERM', () => {
  startedAt = performance.now();
});
const closed = closeOnSignal(server, receiver, { timeoutMs: closeTimeoutMs });
process.once('SIGTERM', () => {
  if (isSignalledTwice) process.kill(process.pid, 'SIGTERM');
  say({ closing: true });
});
say({ port: (server.address() as AddressInfo).port });
const { unfinished } = await closed;
say({ unfinished, afterMs: performance.now() - startedAt });
await redis?.quit();
// It does not exit: what still kept the process alive would show.
process.disconnect();
