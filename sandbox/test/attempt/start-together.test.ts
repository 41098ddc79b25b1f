import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { selfSigned } from '../../../test/support/servers/certificate.js';
import { attemptCallback } from '../../src/attempt/attempt.js';
import { startTogether } from '../../src/attempt/start-together.js';

test.each(['http', 'https'])(
  'over %s no body comes before the heads of all attempts that start together',
  async (scheme) => {
    let heads = 0;
    const headsBeforeBody: number[] = [];
    function listen(request: IncomingMessage, response: ServerResponse): void {
      heads += 1;
      request.once('data', () => headsBeforeBody.push(heads));
      request.on('end', () => response.end());
    }
    const server = scheme === 'http' ? createServer(listen) : createHttpsServer(selfSigned, listen);
    onTestFinished(() => void server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const beforeBody = startTogether(10);
    const attempts = Array.from({ length: 10 }, () => attemptCallback(url, '{}', { beforeBody, anyCertificate: true }));
    const responses = await Promise.all(attempts);
    expect(responses.map((response) => 'status' in response && response.status)).toEqual(Array(10).fill(200));
    expect(headsBeforeBody).toEqual(Array(10).fill(10));
  },
);

test('attempts that start together do not wait for one that cannot connect', async () => {
  const beforeBody = startTogether(2);
  const server = createServer((request, response) => request.resume().on('end', () => response.end()));
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [open, refused] = await Promise.all([
    attemptCallback(url, '{}', { beforeBody }),
    attemptCallback('http://127.0.0.1:1/', '{}', { beforeBody }),
  ]);
  expect(open).toMatchObject({ status: 200 });
  expect(JSON.stringify(refused)).toContain('ECONNREFUSED');
});
