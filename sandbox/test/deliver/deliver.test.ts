import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { expect, onTestFinished, test } from 'vitest';
import { basicAuth, memoryStore, transferCallbackRouter, urlToken } from 'transfer-callbacks';
import { invalidCallbacks, transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { deliver } from 'transfer-sandbox';
import { selfSigned } from '../../../test/support/servers/certificate.js';
import { containing } from '../../../test/support/helpers/containing.js';
import type { DeliverOptions } from '../../src/deliver/deliver.js';
import { startMerchant, type MerchantOptions } from '../service/support.js';
import { serveForTest } from '../../../test/support/servers/serve-for-test.js';

/** An app that takes callbacks, and the ids that it has handled. */
function merchant(options: MerchantOptions = {}) {
  const handled: string[] = [];
  const handle = ({ data }: { data: { id: string } }): number => handled.push(data.id);
  const router = transferCallbackRouter({
    store: memoryStore(),
    verify: urlToken('a-secret-of-this-test'),
    onSuccess: handle,
    onFailed: handle,
    logger: false,
    ...options,
  });
  return { app: express().use('/callbacks', router), handled };
}

const path = '/callbacks/a-secret-of-this-test';

test('deliver posts a callback as JSON, once if it is acknowledged', async () => {
  const { url, received } = await startMerchant([204]);
  const callback = transferSucceeded();
  expect(await deliver(url, callback, { path: '/here' })).toEqual({ acknowledged: true, responses: [204] });
  const headers = { 'content-type': 'application/json' };
  expect(received).toMatchObject([{ method: 'POST', url: '/here', headers, body: JSON.stringify(callback) }]);
});

test('deliver makes four attempts with the same bytes if a callback is not acknowledged', async () => {
  const { url, bodies } = await startMerchant([500, 302, 404, 503]);
  expect(await deliver(url, transferSucceeded())).toEqual({ acknowledged: false, responses: [500, 302, 404, 503] });
  expect(new Set(bodies()).size).toBe(1);
});

test('deliver stops at the first 2xx, and makes one attempt only without `retry`', async () => {
  const { url } = await startMerchant([500, 200, 500]);
  expect(await deliver(url, transferSucceeded())).toEqual({ acknowledged: true, responses: [500, 200] });
  expect(await deliver(url, transferSucceeded(), { retry: false })).toEqual({ acknowledged: false, responses: [500] });
});

test('five concurrent copies run a handler once, and each is acknowledged', async () => {
  const { app, handled } = merchant();
  const callback = transferSucceeded();
  expect(await deliver(app, callback, { path, copies: 5, concurrent: true })).toEqual({
    acknowledged: true,
    responses: [200, 200, 200, 200, 200],
  });
  expect(handled).toEqual([callback.data.id]);
});

test('copies that are not concurrent are delivered one after the other', async () => {
  let running = 0;
  let most = 0;
  const { app } = merchant({
    async onSuccess() {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
    },
  });
  expect((await deliver(app, transferSucceeded(), { path, copies: 3 })).responses).toEqual([200, 200, 200]);
  expect(most).toBe(1);
});

test('a target that does not respond within `attemptTimeoutMs` is reported in `responses`, for each copy', async () => {
  const url = await serveForTest(() => undefined);
  expect(await deliver(url, {}, { attemptTimeoutMs: 20, copies: 2 })).toEqual({
    acknowledged: false,
    responses: Array.from({ length: 8 }, () => 'no response within 20 ms'),
  });
});

test.each<[object, string]>([
  [{ copies: 0 }, 'Expected `copies` to be a whole number from 1 to 2147483647, got 0.'],
  [{ path: '//example.com' }, 'Expected `path` to be a path of the target, got "//example.com".'],
  [{ path: 'http://' }, 'Expected `path` to be a path of the target, got a string of 7 characters.'],
  [{ attemptTimeoutMs: 0 }, 'Expected `attemptTimeoutMs` to be a whole number from 1 to 2147483647, got 0.'],
  [{ headers: { 'X Y': 'a' } }, 'Expected `headers` to be named as HTTP allows, got "X Y".'],
])('deliver refuses the options %j', async (options, message) => {
  await expect(deliver('http://127.0.0.1:9', {}, options as DeliverOptions)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: containing(message),
  });
});

test.each([[undefined], [{ amount: 5n }]])('deliver refuses the callback %o', async (callback) => {
  await expect(deliver('http://127.0.0.1:9', callback)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

test('a delivery leaves nothing open, even if the app never responds', async () => {
  const sockets: Socket[] = [];
  const server = createServer(({ socket }) => sockets.push(socket));
  // More than the socket takes: unread, it hides from the server that the client has gone. The server sees the request
  // within the attempt, also on a busy machine.
  await deliver(server, 'x'.repeat(10_000_000), { attemptTimeoutMs: 2_000, retry: false });
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true]);
});

test('deliver reaches an endpoint that checks a password, with `headers`', async () => {
  const { app, handled } = merchant({ verify: basicAuth({ username: 'service', password: 'a-secret-of-this-test' }) });
  const headers = { Authorization: `Basic ${btoa('service:a-secret-of-this-test')}` };
  const callback = transferSucceeded();
  const at = { path: '/callbacks', retry: false };
  expect((await deliver(app, callback, at)).responses).toEqual([401]);
  expect((await deliver(app, callback, { ...at, headers })).responses).toEqual([200]);
  expect(handled).toEqual([callback.data.id]);
});

test('each invalid callback has its own title, is refused with a 400 and reaches no handler', async () => {
  const { app, handled } = merchant();
  for (const { title, callback } of invalidCallbacks) {
    expect([title, await deliver(app, callback, { path, retry: false })]).toEqual([
      title,
      { acknowledged: false, responses: [400] },
    ]);
  }
  expect(handled).toEqual([]);
  expect(invalidCallbacks.length).toBeGreaterThan(40);
  expect(new Set(invalidCallbacks.map(({ title }) => title)).size).toBe(invalidCallbacks.length);
});

function respondSlowly(_request: IncomingMessage, response: ServerResponse): void {
  setTimeout(() => response.end(), 5);
}

test('deliver reaches a listener, a URL, and a server that listens, at any address, or not yet', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'transfer-callbacks-'));
  const url = await serveForTest(respondSlowly);
  const open = [createServer(respondSlowly), createServer(respondSlowly), createHttpsServer(selfSigned, respondSlowly)];
  open[0]?.listen(join(directory, 'socket'));
  open[1]?.listen(0, 'localhost');
  open[2]?.listen(0, '127.0.0.1');
  await Promise.all(open.map((server) => once(server, 'listening')));
  onTestFinished(() => {
    for (const server of open) server.close();
    return rm(directory, { recursive: true });
  });
  const idle = [createServer(respondSlowly), createHttpsServer(selfSigned, respondSlowly)];
  for (const target of [respondSlowly, url, new URL(url), ...open, ...idle]) {
    expect(await deliver(target, transferFailed())).toEqual({ acknowledged: true, responses: [200] });
  }
  expect([...open, ...idle].map(({ listening }) => listening)).toEqual([true, true, true, false, false]);
});

test('deliver posts to the path of a URL', async () => {
  const { url, received } = await startMerchant();
  await deliver(url, 'x');
  await deliver(url, 'x', { path: '/elsewhere' });
  expect(received).toMatchObject([
    { url: '/callbacks', body: 'x' },
    { url: '/elsewhere', body: 'x' },
  ]);
});

test('deliver checks the certificate of a URL, as the service would', async () => {
  const server = createHttpsServer(selfSigned, respondSlowly);
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  expect(await deliver(`https://127.0.0.1:${port}`, {}, { retry: false })).toEqual({
    acknowledged: false,
    responses: [expect.stringMatching(/^self-signed certificate/)],
  });
});

test('several concurrent deliveries reach one server that does not listen', async () => {
  const server = createServer(respondSlowly);
  const short = deliver(server, {});
  const long = deliver(server, {}, { copies: 5 });
  expect(await short).toEqual({ acknowledged: true, responses: [200] });
  expect(await long).toEqual({ acknowledged: true, responses: [200, 200, 200, 200, 200] });
  expect(server.listening).toBe(false);
});

test('a server that starts to listen during a delivery keeps its own port', async () => {
  const server = createServer(respondSlowly).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  expect(server.listening).toBe(false);
  expect(await deliver(server, {})).toEqual({ acknowledged: true, responses: [200] });
  expect(server.listening).toBe(true);
});

test.each<[string, unknown]>([
  ['a path', '/callbacks'],
  ['a URL without a scheme', 'localhost:3000'],
  ['null', null],
  ['an app that has its server within', { listen: () => undefined, server: createServer() }],
])('deliver refuses %s as a target, and the error lists what it accepts', async (_title, target) => {
  await expect(deliver(target as string, {})).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(
      /^Expected `target` to be an app, a request listener, an http or https server \(of Fastify: `app\.server`\), or a URL, got /,
    ) as string,
  });
});
