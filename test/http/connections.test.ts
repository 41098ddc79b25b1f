import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers } from '../support/http-servers.js';
import { post } from '../support/post.js';
import { head, overSocket, parseStatus } from '../support/sockets.js';
import { recordingOptions } from '../support/recording-options.js';
import { start } from './support.js';

describe.each(nodeServers)('on $name', (server) => {
  test('a kept connection serves one delivery after another, also after refused ones', async () => {
    const { options, handled } = recordingOptions();
    const { url } = await start(server, { ...options, bodyLimitBytes: 2_000 });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => {
      agent.destroy();
    });
    const ports = new Set<number | undefined>();
    const send = async (body: string, method = 'POST'): Promise<number | undefined> => {
      const request = httpRequest(url, { agent, method, headers: { 'Content-Type': 'application/json' } });
      request.end(body);
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      ports.add(response.socket.localPort);
      await response.toArray();
      return response.statusCode;
    };
    const good = JSON.stringify(transferSucceeded());
    const statuses = [];
    for (const [body, method] of [[good], ['{'], [good, 'PUT'], ['x'.repeat(19_000), 'PUT'], [good]] as const) {
      statuses.push(await send(body, method));
    }
    expect(statuses).toEqual([200, 400, 405, 405, 200]);
    expect(ports.size).toBe(1);
    expect(handled).toHaveLength(1);
  });

  test('a response to HEAD does not wait for the body that the request announces', async () => {
    const { options } = recordingOptions();
    let response: ServerResponse | undefined;
    const { url } = await start(server, options, {
      before: [
        (_request, given, next) => {
          response = given;
          next();
        },
      ],
    });
    let hadEnded: boolean | undefined;
    const text = await overSocket(url, async (socket) => {
      socket.write(head(url, { 'Content-Length': 2 }, 'HEAD'));
      await once(socket, 'data');
      hadEnded = response?.writableEnded;
      socket.end('{}');
    });
    expect(parseStatus(text)).toBe(405);
    expect(hadEnded).toBe(false);
  });

  test('pipelined deliveries on one connection are responded to in order', async () => {
    const { options, handled } = recordingOptions();
    const { url } = await start(server, options);
    const first = JSON.stringify(transferSucceeded({ externalId: 'first' }));
    const last = JSON.stringify(transferSucceeded({ externalId: 'last' }));
    const response = await overSocket(url, (socket) => {
      const headOf = (body: string): string =>
        head(url, { 'Content-Type': 'application/json', 'Content-Length': body.length });
      for (const body of [first, '{']) socket.write(headOf(body).replace('Connection: close\r\n', '') + body);
      socket.write(headOf(last) + last);
    });
    expect(response.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400', 'HTTP/1.1 200']);
    expect(handled.map(({ data }) => data.externalId)).toEqual(['first', 'last']);
  });

  test.each([
    ['both lengths', { 'Content-Length': 4, 'Transfer-Encoding': 'chunked' }, '{}'],
    ['a Content-Length that is no number', { 'Content-Length': 'many' }, '{}'],
    ['a chunk length that is no number', { 'Transfer-Encoding': 'chunked' }, 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a negative Content-Length', { 'Content-Length': -1 }, '{}'],
  ])('a request with %s is refused before it runs anything, and the server goes on', async (_what, headers, body) => {
    const { options, handled } = recordingOptions();
    const { url } = await start(server, options);
    const response = await overSocket(url, (socket) =>
      socket.write(head(url, { 'Content-Type': 'application/json', ...headers }) + body),
    );
    expect([0, 400]).toContain(parseStatus(response));
    expect(handled).toEqual([]);
    expect((await post(url, transferSucceeded())).status).toBe(200);
  });

  test('a sender that expects 100-continue gets it before it sends its body', async () => {
    const { options, handled } = recordingOptions();
    const { url } = await start(server, options);
    const body = JSON.stringify(transferSucceeded());
    const response = await overSocket(url, async (socket) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length, Expect: '100-continue' };
      socket.write(head(url, headers));
      await once(socket, 'data');
      socket.write(body);
    });
    expect(response).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(handled).toHaveLength(1);
  });
});
