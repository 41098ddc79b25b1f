import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { attemptCallback, type AttemptResponse } from '../../src/attempt/attempt.js';
import { startMerchant } from '../sandbox/support.js';

function errorOf(response: AttemptResponse): string | undefined {
  return 'error' in response ? response.error : undefined;
}

describe('an attempt', () => {
  test('an attempt whose response has no length ends with the connection', async () => {
    const { url } = await startMerchant((_received, _count, response) => {
      response.socket?.end('HTTP/1.1 202 Accepted\r\nConnection: close\r\n\r\nas long as it lasts');
    });
    expect(await attemptCallback(url, '{}')).toMatchObject({ status: 202 });
  });

  test('an attempt gets no response if the server switches to another protocol', async () => {
    const { url } = await startMerchant((_received, _count, response) => {
      response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    });
    expect(errorOf(await attemptCallback(url, '{}'))).toMatch(/closed|hang up/);
  });

  test.each([
    ['nowhere', /Invalid URL/],
    ['ftp://127.0.0.1/', /ftp:/],
    ['http://127.0.0.1:1/', /ECONNREFUSED/],
    ['http://localhost:1/', /ECONNREFUSED/],
    ['https://127.0.0.1:1/', /ECONNREFUSED/],
  ])('an attempt at %s resolves with an error and does not reject', async (url, error) => {
    expect(errorOf(await attemptCallback(url, '{}'))).toMatch(error);
  });

  test('an attempt that was aborted before it began is not sent', async () => {
    const { url, received } = await startMerchant();
    expect(await attemptCallback(url, '{}', { signal: AbortSignal.abort() })).toEqual({ error: 'aborted' });
    expect(received).toEqual([]);
  });

  test('an attempt gets no response if the connection is cut', async () => {
    const { url } = await startMerchant((_received, _count, response) => response.destroy());
    expect(await attemptCallback(url, Buffer.from('{}'))).toEqual({ error: 'socket hang up' });
  });

  test('an attempt gets no response if it is cut in the middle', async () => {
    const { url } = await startMerchant((_received, _count, response) => {
      response.writeHead(200, { 'Content-Length': 9 }).write('half', () => response.destroy());
    });
    expect(await attemptCallback(url, '{}')).toEqual({ error: 'response cut short' });
  });

  test('an attempt that is sent in pieces stops when the merchant cuts the connection', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.destroy());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const response = await attemptCallback(`http://127.0.0.1:${port}/`, 'x'.repeat(100_000), { pieces: true });
    expect(errorOf(response)).toMatch(/hang up|ECONNRESET|EPIPE/);
  });
});
