import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { later } from '../../../test/core/support.js';
import { containing } from '../../../test/support/helpers/containing.js';
import { selfSigned } from '../../../test/support/servers/certificate.js';
import { baseUrlAt, isLoopback } from '../../src/attempt/address.js';
import { attemptCallback, findReason, isAcknowledgement, startTogether } from '../../src/attempt/attempt.js';
import { requireAttemptHeaders, requireHeaders, toHeaders } from '../../src/attempt/headers.js';
import { startMerchant } from '../service/support.js';
import { serveForTest } from '../../../test/support/servers/serve-for-test.js';

const closed = expect.stringMatching(/closed|hang up/) as string;

test('only a 2xx acknowledges a callback', () => {
  const statuses = [99, 199, 200, 204, 299, 300, 307, 404, 503];
  expect(statuses.filter((status) => isAcknowledgement({ status, body: '' }))).toEqual([200, 204, 299]);
  expect(isAcknowledgement({ error: 'aborted' })).toBe(false);
});

test('the reason is the message or the outcome in the body', () => {
  const cases: [body: string, reason: string | undefined][] = [
    ['{"message":"busy","outcome":"in_progress"}', 'busy'],
    ['{"message":5,"outcome":"processed"}', 'processed'],
    ['{}', undefined],
    ['null', undefined],
    ['<html>', undefined],
  ];
  for (const [body, reason] of cases) expect(findReason({ status: 200, body }), body).toBe(reason);
  expect(findReason({ error: 'aborted' })).toBeUndefined();
});

test('the headers of the caller are added to those of the attempt', async () => {
  const { url, received } = await startMerchant();
  const headers = { 'X-Token': 'a secret', Authorization: 'Basic YTpi' };
  expect(await attemptCallback(url, '{}', { headers })).toMatchObject({ status: 200 });
  expect(received[0]?.headers).toEqual({
    host: new URL(url).host,
    connection: 'close',
    'content-type': 'application/json',
    'content-length': '2',
    'x-token': 'a secret',
    authorization: 'Basic YTpi',
  });
});

test('of a long response the first 4 096 bytes are kept', async () => {
  const { url } = await startMerchant((_received, _count, response) => {
    response.writeHead(500, { 'Retry-After': '7' });
    response.write('a'.repeat(4_000), () => response.end('b'.repeat(300_000)));
  });
  const body = 'a'.repeat(4_000) + 'b'.repeat(96);
  expect(await attemptCallback(url, '{}')).toMatchObject({ status: 500, body, headers: { 'retry-after': '7' } });
});

test('a body is sent as a whole, or in pieces that make up the same body', async () => {
  const { url, received } = await startMerchant();
  const body = Array.from({ length: 100 }, (_, index) => `${index} `).join('');
  expect(await attemptCallback(url, body)).toMatchObject({ status: 200 });
  expect(await attemptCallback(url, body, { pieces: true })).toMatchObject({ status: 200 });
  expect(received.map((each) => each.body)).toEqual([body, body]);
  expect(received.map(({ pieces }) => pieces > 1)).toEqual([false, true]);
});

test('an attempt that is sent in pieces stops when the merchant cuts the connection', async () => {
  const url = await serveForTest((request) => request.destroy());
  const response = await attemptCallback(url, 'x'.repeat(100_000), { pieces: true });
  expect(response).toEqual({ error: expect.stringMatching(/hang up|ECONNRESET|EPIPE/) as string });
});

test.each([
  ['nowhere', /Invalid URL/],
  ['ftp://127.0.0.1/', /ftp:/],
  ['http://localhost:1/', /ECONNREFUSED/],
])('an attempt at %s resolves with an error and does not reject', async (url, error) => {
  expect(await attemptCallback(url, '{}')).toEqual({ error: expect.stringMatching(error) as string });
});

test.each<[string, string, object]>([
  ['without a length ends with the connection', '202 Accepted\r\nConnection: close\r\n\r\nas long as', { status: 202 }],
  ['that is cut in the middle is none', '200 OK\r\nContent-Length: 9\r\n\r\nhalf', { error: 'response cut short' }],
  [
    'to another protocol is none',
    '101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    { error: closed },
  ],
])('a response %s', async (_title, response, expected) => {
  const { url } = await startMerchant((_received, _count, { socket }) => socket?.end(`HTTP/1.1 ${response}`));
  expect(await attemptCallback(url, '{}')).toMatchObject(expected);
});

test('an attempt that loses the response ends without it, although the merchant has responded', async () => {
  const { url, received } = await startMerchant();
  expect(await attemptCallback(url, '{}', { dropResponse: true })).toEqual({ error: 'response lost' });
  expect(received).toHaveLength(1);
});

test('an attempt ends without a response after timeoutMs, or when its signal aborts, and is not sent after that', async () => {
  const controller = new AbortController();
  const responses: ServerResponse[] = [];
  const { url, received } = await startMerchant(({ body }, _count, response) => {
    responses.push(response);
    if (body === '{"aborts":true}') controller.abort();
  });
  // On a busy machine it may end before the merchant has it.
  expect(await attemptCallback(url, '{}', { timeoutMs: 100 })).toEqual({ error: 'no response within 100 ms' });
  const { signal } = controller;
  expect(await attemptCallback(url, '{"aborts":true}', { signal, timeoutMs: 60_000 })).toEqual({ error: 'aborted' });
  await vi.waitUntil(() => responses.every(({ destroyed }) => destroyed));
  expect(await attemptCallback(url, '{"after":true}', { signal })).toEqual({ error: 'aborted' });
  expect(received.filter(({ body }) => body === '{"after":true}')).toEqual([]);
});

const noHeaders = 'Expected `headers` to be an object of names and values, got';
const noName = 'Expected `headers` to be named as HTTP allows, got';
const own =
  'Expected `headers` to be without Host, Connection, Content-Type, Content-Length, Transfer-Encoding, which the delivery sets, got';
const noValue = 'Expected `headers.X-Token` to be a string that a header can carry, got';

test.each<[unknown, string]>([
  ['X-Token: a', `${noHeaders} a string of 10 characters.`],
  [null, `${noHeaders} null.`],
  [new Headers({ 'X-Token': 'a' }), `${noHeaders} an object.`],
  [{ 'X Token': 'a' }, `${noName} "X Token".`],
  [{ '': 'a' }, `${noName} "".`],
  [{ 'content-type': 'text/plain' }, `${own} "content-type".`],
  [{ 'Content-Length': '1' }, `${own} "Content-Length".`],
  [{ host: 'example.com' }, `${own} "host".`],
  [{ Connection: 'keep-alive' }, `${own} "Connection".`],
  [{ 'transfer-encoding': 'chunked' }, `${own} "transfer-encoding".`],
  [{ 'X-Token': 'a\r\nX-Other: b' }, `${noValue} a string of 13 characters.`],
  [{ 'X-Token': '付' }, `${noValue} a string of 1 characters.`],
  [{ 'X-Token': undefined }, `${noValue} undefined.`],
])('requireHeaders refuses %j', (headers, message) => {
  expect(() => {
    requireHeaders(headers);
  }).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }) as Error);
});

test('headers have what HTTP can carry, or are a function of the body, and what it returns is checked, too', () => {
  const body = Buffer.from('{}');
  const sign = (given: Buffer) => ({ 'X-Signature': given.toString('hex') });
  expect(() => {
    requireHeaders({ 'X-Token': 'a secret, é', authorization: '' });
    requireAttemptHeaders(sign, 'headers');
  }).not.toThrow();
  expect(toHeaders(sign, body)).toEqual({ 'X-Signature': '7b7d' });
  expect(toHeaders({ 'X-Token': 'a' }, body)).toEqual({ 'X-Token': 'a' });
  expect(() => {
    requireAttemptHeaders('X-Token: a', 'headers');
  }).toThrow(noHeaders);
  expect(() => toHeaders((() => 'X-Token: a') as never, body)).toThrow(
    noHeaders.replace('headers', 'what the function of the headers returns'),
  );
});

test('the URL of a server names an address that can be reached', () => {
  expect(baseUrlAt('0.0.0.0', 80)).toBe('http://127.0.0.1:80');
  expect(baseUrlAt('::', 80)).toBe('http://[::1]:80');
  expect(baseUrlAt('::1', 443, 'https')).toBe('https://[::1]:443');
  expect(baseUrlAt('localhost', 80)).toBe('http://localhost:80');
  expect(baseUrlAt('192.0.2.1', 80)).toBe('http://192.0.2.1:80');
});

test('only an address of the loopback counts as one, whatever a name begins with', () => {
  const hosts = ['localhost', '::1', '[::1]', '127.0.0.1', '127.255.0.9'];
  expect(hosts.filter((host) => !isLoopback(host))).toEqual([]);
  const others = ['127.example.com', '127.0.0.1.example.com', '10.0.0.127', '0.0.0.0', '::', '::2', 'example.com', ''];
  expect(others.filter(isLoopback)).toEqual([]);
});

test.each(['http', 'https'])(
  'over %s the head of an attempt is sent first, and its body when it may',
  async (scheme) => {
    let received = '';
    const { promise: started, resolve: start } = later();
    const { promise: head, resolve: hasHead } = later();
    const server = (scheme === 'http' ? createServer() : createHttpsServer(selfSigned)).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      hasHead();
      request.on('data', (chunk: Buffer) => (received += chunk.toString()));
      request.on('end', () => response.end());
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const attempt = attemptCallback(`${scheme}://127.0.0.1:${port}`, '{}', {
      beforeBody: () => started,
      anyCertificate: true,
    });
    await head;
    expect(received).toBe('');
    start();
    expect(await attempt).toMatchObject({ status: 200 });
    expect(received).toBe('{}');
  },
);

test('attempts that start together begin when the last one has its connection', async () => {
  const { url } = await startMerchant();
  const waitForAll = startTogether(10);
  let connections = 0;
  const connectionsAtStart: number[] = [];
  async function beforeBody(): Promise<void> {
    connections += 1;
    await waitForAll();
    connectionsAtStart.push(connections);
  }
  const responses = await Promise.all(Array.from({ length: 10 }, () => attemptCallback(url, '{}', { beforeBody })));
  expect(responses.map((response) => 'status' in response && response.status)).toEqual(Array(10).fill(200));
  expect(connectionsAtStart).toEqual(Array(10).fill(10));
});

test('attempts that start together give up waiting for one that cannot connect', async () => {
  const { url } = await startMerchant();
  const beforeBody = startTogether(2);
  const [first, second] = await Promise.all([
    attemptCallback(url, '{}', { beforeBody }),
    attemptCallback('http://127.0.0.1:1/', '{}', { beforeBody }),
  ]);
  expect(first).toMatchObject({ status: 200 });
  expect(JSON.stringify(second)).toContain('ECONNREFUSED');
});
