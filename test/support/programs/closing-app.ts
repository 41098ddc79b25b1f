/** An app with requests beside its callbacks, which closes on a signal. Its parent tells it when a response ends. */
import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { closeOnSignal, memoryStore, transferCallbackReceiver, transferCallbackRouter } from 'transfer-callbacks';
import { readAppOptions } from './app.js';

/** What the app is started with. */
export interface ClosingOptions {
  readonly timeoutMs: number;
  /** Sends itself a second signal as soon as the first has been handled, as `npm start` under systemd does. */
  readonly isSignalledTwice?: boolean;
}

/** What the app sends to its parent: its port, what waits for `finish`, or how it has closed. */
export type ClosingMessage =
  | { readonly port: number }
  | { readonly waits: 'handler' | 'checkout' | 'stream' }
  | { readonly isClosing: true }
  | { readonly unfinished: number; readonly afterMs: number };

const { timeoutMs, isSignalledTwice } = readAppOptions() as ClosingOptions;
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
  response.type('text/event-stream').write('data: 1\n\n');
  say({ waits: 'stream' });
});
const server = app.listen(0, '127.0.0.1');
// As behind a load balancer that keeps its connections.
server.keepAliveTimeout = 600_000;
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
