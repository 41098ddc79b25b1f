/** An app with requests beside its callbacks, which closes on a signal. Its parent tells it when a response ends. */
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import express from 'express';
import {
  closeOnSignal,
  memoryStore,
  transferCallbackListener,
  transferCallbackReceiver,
  transferCallbackRouter,
} from 'transfer-callbacks';
import { readAppOptions } from './app.js';

/** What the app is started with. */
export interface ClosingOptions {
  readonly timeoutMs: number;
  /** Sends itself a second signal as soon as the first has been handled, as `npm start` under systemd does. */
  readonly isSignalledTwice?: boolean;
  /** Serves the stream and callbacks over HTTP/2 without TLS. */
  readonly isHttp2?: boolean;
}

/** What the app sends to its parent: its port, what waits for `finish`, or how it has closed. */
export type ClosingMessage =
  | { readonly port: number }
  | { readonly waits: 'handler' | 'checkout' | 'stream' }
  | { readonly isClosing: true }
  | { readonly unfinished: number; readonly afterMs: number };

const { timeoutMs, isSignalledTwice, isHttp2 } = readAppOptions() as ClosingOptions;
const parent = new EventEmitter();
process.on('message', () => parent.emit('finish'));
const say = (message: ClosingMessage): boolean | undefined => process.send?.(message);

async function waitForParent(waits: 'handler' | 'checkout'): Promise<void> {
  const finished = once(parent, 'finish');
  say({ waits });
  await finished;
}

const onSuccess = (): Promise<void> => waitForParent('handler');
const receiver = transferCallbackReceiver({ store: memoryStore(), onSuccess, onFailed: onSuccess, logger: false });
const app = express();
app.post('/callbacks', transferCallbackRouter({ receiver }));
app.get('/checkout', async (_request, response) => {
  await waitForParent('checkout');
  response.send('paid');
});
app.get('/stream', (_request, response) => {
  openStream(response);
});

function openStream(response: ServerResponse | Http2ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  (response as ServerResponse).write('data: 1\n\n');
  say({ waits: 'stream' });
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
const closed = closeOnSignal(server, receiver, { timeoutMs });
process.once('SIGTERM', () => {
  if (isSignalledTwice) process.kill(process.pid, 'SIGTERM');
  say({ isClosing: true });
});
say({ port: (server.address() as AddressInfo).port });
const { unfinished } = await closed;
say({ unfinished, afterMs: performance.now() - startedAt });
// It does not exit: what still kept the process alive would show.
process.disconnect();
