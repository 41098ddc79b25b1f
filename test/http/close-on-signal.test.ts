// What `closeOnSignal` does with the requests of an app beside its callbacks, and with several signals. What a signal
// does to a process is tried in processes of their own, in test/faults.
import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { connect, createServer as createHttp2Server, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { closeOnSignal, transferCallbackListener } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later } from '../core/support.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { post } from '../support/helpers/post.js';

/** Longer than any test may take. */
const longMs = 600_000;

/**
 * Serves callbacks, a stream at `/stream`, and a GET of `/checkout`, which ends with the function that `checkouts` gets.
 * Handlers succeed after `handlers`.
 */
async function startApp({ timeoutMs = longMs, isHttp2 = false, handlers = Promise.resolve() }) {
  const checkouts: (() => void)[] = [];
  const { options } = recordingOptions();
  const onSuccess = vi.fn(() => handlers);
  const listener = transferCallbackListener({ ...options, onSuccess });
  const serve: RequestListener = (request, response) => {
    if (request.url === '/checkout') checkouts.push(() => response.end('paid'));
    else if (request.url === '/stream') response.write('data: 1\n\n');
    else listener(request, response);
  };
  const server: Server | Http2Server = isHttp2 ? createHttp2Server(serve as never) : createServer(serve);
  // As behind a load balancer that keeps its connections.
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = longMs;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = vi.spyOn(listener.receiver, 'close');
  const listeners = () => process.listenerCount('SIGTERM');
  const before = listeners();
  const closed = closeOnSignal(server, listener.receiver, { timeoutMs });
  onTestFinished(async () => {
    server.close();
    await vi.waitFor(() => {
      expect(listeners()).toBe(before);
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    close,
    closed,
    checkouts,
    onSuccess,
    isListening: () => listeners() > before,
    signal: () => process.emit('SIGTERM'),
  };
}

/** Sends a GET on a connection that is kept alive. */
async function ask(url: string): Promise<IncomingMessage> {
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => {
    agent.destroy();
  });
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  return response;
}

test('a request of the app gets the rest of timeoutMs, and its connection does not hold the server then', async () => {
  const app = await startApp({});
  const checkout = ask(`${app.url}/checkout`);
  await vi.waitFor(() => {
    expect(app.checkouts).toHaveLength(1);
  });
  app.signal();
  // Longer than the least time for the other requests.
  await pause(1_500);
  for (const end of app.checkouts) end();
  const response = await checkout;
  expect([response.statusCode, await text(response)]).toEqual([200, 'paid']);
  expect(await app.closed).toEqual({ unfinished: 0, ids: [] });
});

test.each([
  ['until timeoutMs', 2_000, 2_000],
  ['for a second', 0, 1_000],
])('a stream that stays open holds the server %s, and is then cut', async (_how, timeoutMs, leastMs) => {
  const app = await startApp({ timeoutMs });
  const stream = await ask(`${app.url}/stream`);
  const cut = text(stream).catch((error: unknown) => (error as NodeJS.ErrnoException).code);
  const signalledAt = performance.now();
  app.signal();
  await app.closed;
  expect(performance.now() - signalledAt).toBeGreaterThanOrEqual(leastMs);
  expect(await cut).toBe('ECONNRESET');
});

test('an idle session of HTTP/2 and one that has just begun are closed, and one with a delivery after its response', async () => {
  const handling = later();
  const app = await startApp({ isHttp2: true, handlers: handling.promise });
  const [idle, busy] = [connect(app.url), connect(app.url)];
  await Promise.all([once(idle, 'connect'), once(busy, 'connect')]);
  const delivery = busy.request({ ':method': 'POST', 'content-type': 'application/json' });
  delivery.end(JSON.stringify(transferSucceeded()));
  await vi.waitFor(() => {
    expect(app.onSuccess).toHaveBeenCalled();
  });
  const idleClosed = once(idle, 'close');
  // The connection is accepted before the signal, and has no session yet.
  app.server.prependOnceListener('connection', app.signal);
  await Promise.all([idleClosed, once(connect(app.url), 'close')]);
  handling.resolve();
  expect(await text(delivery)).toBe('{"outcome":"processed"}');
  expect(await app.closed).toEqual({ unfinished: 0, ids: [] });
});

test('a stream of HTTP/2 that stays open is cut after timeoutMs', async () => {
  const app = await startApp({ timeoutMs: 0, isHttp2: true });
  const session = connect(app.url);
  const stream = session.request({ ':path': '/stream' }).on('error', () => undefined);
  await once(stream, 'response');
  const cut = once(session, 'close');
  app.signal();
  await app.closed;
  await cut;
});

test('two signals within a second are one stop, and cut neither a handler nor a request of the app', async () => {
  const handling = later();
  const app = await startApp({ handlers: handling.promise });
  const checkout = ask(`${app.url}/checkout`);
  const delivered = post(app.url, transferSucceeded());
  await vi.waitFor(() => {
    expect([app.checkouts.length, app.onSuccess.mock.calls.length]).toEqual([1, 1]);
  });
  app.signal();
  await pause(500);
  // Without a listener it would end the process.
  expect(app.isListening()).toBe(true);
  app.signal();
  handling.resolve();
  expect(await delivered).toMatchObject({ status: 200 });
  await pause(100);
  for (const end of app.checkouts) end();
  expect(await text(await checkout)).toBe('paid');
  expect(await app.closed).toBe(await app.close.mock.results[0]?.value);
  expect(app.close.mock.calls).toEqual([[{ timeoutMs: longMs }]]);
});
