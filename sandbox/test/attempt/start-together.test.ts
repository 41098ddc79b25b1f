import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { selfSigned } from '../../../test/support/servers/certificate.js';
import { attemptCallback } from '../../src/attempt/attempt.js';
import { gate } from '../service/support.js';
import { startTogether } from '../../src/attempt/start-together.js';

/** Serves `listen` on a free port. */
async function open(scheme: string, listen: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = scheme === 'http' ? createServer(listen) : createHttpsServer(selfSigned, listen);
  onTestFinished(() => void server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function respond(request: IncomingMessage, response: ServerResponse): void {
  request.resume().on('end', () => response.end());
}

test.each(['http', 'https'])(
  'over %s the head of an attempt is sent first, and its body when it may',
  async (scheme) => {
    let received = '';
    const { opened: started, open: start } = gate();
    const { opened: head, open: hasHead } = gate();
    const url = await open(scheme, (request, response) => {
      hasHead();
      request.on('data', (chunk: Buffer) => (received += chunk.toString()));
      request.on('end', () => response.end());
    });
    const attempt = attemptCallback(url, '{}', { beforeBody: () => started, anyCertificate: true });
    await head;
    expect(received).toBe('');
    start();
    expect(await attempt).toMatchObject({ status: 200 });
    expect(received).toBe('{}');
  },
);

test('attempts that start together begin when the last one has its connection', async () => {
  const url = await open('http', respond);
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
  const url = await open('http', respond);
  const beforeBody = startTogether(2);
  const [first, second] = await Promise.all([
    attemptCallback(url, '{}', { beforeBody }),
    attemptCallback('http://127.0.0.1:1/', '{}', { beforeBody }),
  ]);
  expect(first).toMatchObject({ status: 200 });
  expect(JSON.stringify(second)).toContain('ECONNREFUSED');
});
