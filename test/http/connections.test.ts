import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers } from '../support/http-servers.js';
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
});
