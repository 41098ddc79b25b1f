import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attemptCallback } from '../../src/attempt/attempt.js';
import { requireHeaders } from '../../src/attempt/headers.js';
import { selfSigned } from '../support/certificate.js';
import { serve } from '../support/serve.js';
import { containing } from '../support/containing.js';

test('the headers of the caller are added to those of the attempt and do not replace them', async () => {
  const received: IncomingHttpHeaders[] = [];
  const { url, close } = await serve((request, response) => {
    received.push(request.headers);
    response.end();
  });
  const headers = { 'X-Token': 'a secret', Authorization: 'Basic YTpi' };
  expect(await attemptCallback(url, '{}', { headers })).toMatchObject({ status: 200 });
  expect(received).toEqual([
    {
      host: new URL(url).host,
      connection: 'close',
      'content-type': 'application/json',
      'content-length': '2',
      'x-token': 'a secret',
      authorization: 'Basic YTpi',
    },
  ]);
  await close();
});

describe('an https server that signed its certificate itself', () => {
  const server = createServer(selfSigned, (_request, response) => response.end());
  let url: string;
  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  test('a self-signed certificate is refused', async () => {
    expect(await attemptCallback(url, '{}')).toEqual({
      error: expect.stringMatching(/^self-signed certificate/) as string,
    });
  });

  test('a self-signed certificate is accepted if any certificate is', async () => {
    expect(await attemptCallback(url, '{}', { anyCertificate: true })).toMatchObject({ status: 200 });
  });
});

describe('requireHeaders', () => {
  const own = 'without Host, Connection, Content-Type, Content-Length, Transfer-Encoding, which the delivery sets';

  test('requireHeaders accepts names and values that HTTP can carry', () => {
    expect(() => {
      requireHeaders({ 'X-Token': 'a secret, é', authorization: '' });
    }).not.toThrow();
  });

  test.each<[unknown, string]>([
    ['X-Token: a', 'Expected `headers` to be an object of names and values, got a string of 10 characters.'],
    [null, 'Expected `headers` to be an object of names and values, got null.'],
    [['X-Token', 'a'], 'Expected `headers` to be an object of names and values, got an array.'],
    [new Headers({ 'X-Token': 'a' }), 'Expected `headers` to be an object of names and values, got an object.'],
    [{ 'X Token': 'a' }, 'Expected `headers` to be named as HTTP allows, got "X Token".'],
    [{ '': 'a' }, 'Expected `headers` to be named as HTTP allows, got "".'],
    [{ 'content-type': 'text/plain' }, `Expected \`headers\` to be ${own}, got "content-type".`],
    [{ 'Content-Length': '1' }, `Expected \`headers\` to be ${own}, got "Content-Length".`],
    [{ host: 'example.com' }, `Expected \`headers\` to be ${own}, got "host".`],
    [{ Connection: 'keep-alive' }, `Expected \`headers\` to be ${own}, got "Connection".`],
    [{ 'transfer-encoding': 'chunked' }, `Expected \`headers\` to be ${own}, got "transfer-encoding".`],
    [
      { 'X-Token': 'a\r\nX-Other: b' },
      'Expected `headers.X-Token` to be a string that a header can carry, got a string of 13 characters.',
    ],
    [
      { 'X-Token': '付' },
      'Expected `headers.X-Token` to be a string that a header can carry, got a string of 1 characters.',
    ],
    [{ 'X-Token': undefined }, 'Expected `headers.X-Token` to be a string that a header can carry, got undefined.'],
  ])('requireHeaders refuses %j', (headers, message) => {
    expect(() => {
      requireHeaders(headers);
    }).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }) as Error);
  });
});
