import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import express, { type Express } from 'express';
import { expect, test } from 'vitest';
import {
  basicAuth,
  memoryStore,
  transferCallbackRouter,
  urlToken,
  type ReceiverOptions,
  type Verifier,
} from 'transfer-callbacks';
import { deliver, invalidCallbacks, transferSucceeded } from 'transfer-callbacks/testing';
import { serve } from '../support/serve.js';
import { appResponding, closedAfterEach } from './support.js';
import { containing } from '../support/containing.js';
import type { DeliverOptions } from '../../src/testing/deliver.js';

const closing = closedAfterEach();

function merchant(options: Partial<ReceiverOptions> & { verify?: Verifier<unknown> } = {}): {
  app: Express;
  handled: string[];
} {
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
  const { app, bodies } = appResponding(204);
  const callback = transferSucceeded();
  expect(await deliver(app, callback, { path: '/here' })).toEqual({ acknowledged: true, responses: [204] });
  expect(bodies).toEqual([`POST /here application/json ${JSON.stringify(callback)}`]);
});

test('deliver makes four attempts with the same bytes if a callback is not acknowledged', async () => {
  const { app, bodies } = appResponding(500, 302, 404, 503, 200);
  expect(await deliver(app, transferSucceeded())).toEqual({ acknowledged: false, responses: [500, 302, 404, 503] });
  expect(new Set(bodies).size).toBe(1);
});

test('deliver stops at the first 2xx, and makes one attempt only without `retry`', async () => {
  const { app } = appResponding(500, 200);
  expect(await deliver(app, transferSucceeded())).toEqual({ acknowledged: true, responses: [500, 200] });
  const { app: other } = appResponding(500, 200);
  expect(await deliver(other, transferSucceeded(), { retry: false })).toEqual({
    acknowledged: false,
    responses: [500],
  });
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

test('a target that does not respond is reported in `responses`', async () => {
  const { url, close } = await serve((request) => request.socket.destroy());
  closing.push(close);
  const { acknowledged, responses } = await deliver(url, transferSucceeded(), { copies: 2 });
  expect(acknowledged).toBe(false);
  expect(responses).toHaveLength(8);
  expect(responses.every((response) => typeof response === 'string')).toBe(true);
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

test('deliver ends an attempt without a response after `attemptTimeoutMs`', async () => {
  const { url, close } = await serve(() => undefined);
  closing.push(close);
  expect(await deliver(url, {}, { attemptTimeoutMs: 20 })).toEqual({
    acknowledged: false,
    responses: Array.from({ length: 4 }, () => 'no response within 20 ms'),
  });
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

test.each(invalidCallbacks)('$title is refused with a 400 and reaches no handler', async ({ callback }) => {
  const { app, handled } = merchant();
  expect(await deliver(app, callback, { path })).toEqual({ acknowledged: false, responses: [400, 400, 400, 400] });
  expect(handled).toEqual([]);
});

test('each invalid callback has a different title', () => {
  expect(new Set(invalidCallbacks.map(({ title }) => title)).size).toBe(invalidCallbacks.length);
  expect(invalidCallbacks.length).toBeGreaterThan(40);
});
