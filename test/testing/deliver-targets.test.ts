import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryStore, transferCallbackListener } from 'transfer-callbacks';
import { deliver, transferFailed } from 'transfer-callbacks/testing';
import { selfSigned } from '../support/certificate.js';
import { serve } from '../support/serve.js';
import { appResponding, closedAfterEach } from './support.js';

const closing = closedAfterEach();

function respondSlowly(_request: IncomingMessage, response: ServerResponse): void {
  setTimeout(() => response.end(), 5);
}

test('deliver reaches a listener, a server that listens, a server that does not listen yet, and a URL', async () => {
  const options = {
    store: memoryStore(),
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
  } as const;
  const listener = transferCallbackListener(options);
  const served = await serve(listener);
  closing.push(served.close);
  const listening = createServer(listener).listen(0, '127.0.0.1');
  closing.push(() => listening.close());
  const idle = createServer(listener);
  for (const target of [listener, listening, idle, served.url, new URL(served.url)]) {
    expect(await deliver(target, transferFailed())).toEqual({ acknowledged: true, responses: [200] });
  }
  expect([listening.listening, idle.listening]).toEqual([true, false]);
});

test('deliver posts to the path of a URL', async () => {
  const { app, bodies } = appResponding(200);
  const { url, close } = await serve(app);
  closing.push(close);
  await deliver(`${url}/callbacks`, 'x');
  await deliver(`${url}/callbacks`, 'x', { path: '/elsewhere' });
  expect(bodies).toEqual(['POST /callbacks application/json x', 'POST /elsewhere application/json x']);
});

test('deliver reaches a server at every address that it listens on', async () => {
  const server = createServer((_request, response) => response.end()).listen(0, 'localhost');
  await once(server, 'listening');
  expect(await deliver(server, {})).toEqual({ acknowledged: true, responses: [200] });
  server.close();
});

test('deliver reaches an https server with any certificate, whether it listens yet or not', async () => {
  const { app } = appResponding(200);
  const listening = createHttpsServer(selfSigned, app).listen(0, '127.0.0.1');
  closing.push(() => listening.close());
  await once(listening, 'listening');
  const idle = createHttpsServer(selfSigned, app);
  for (const target of [listening, idle]) {
    expect(await deliver(target, transferFailed())).toEqual({ acknowledged: true, responses: [200] });
  }
  expect([listening.listening, idle.listening]).toEqual([true, false]);
});

test('deliver checks the certificate of a URL, as the service would', async () => {
  const server = createHttpsServer(selfSigned, (_request, response) => response.end());
  closing.push(() => server.close());
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
  closing.push(() => server.close());
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

test('deliver reaches a server that listens at a path of the file system', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'transfer-callbacks-'));
  const server = createServer(respondSlowly).listen(join(directory, 'socket'));
  closing.push(
    () => server.close(),
    () => rm(directory, { recursive: true }),
  );
  await once(server, 'listening');
  expect(await deliver(server, {})).toEqual({ acknowledged: true, responses: [200] });
});
