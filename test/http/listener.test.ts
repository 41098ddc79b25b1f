import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { Agent, type ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers, plainServer, type Middleware } from '../support/servers/http-servers.js';
import { errorBody, post } from '../support/helpers/post.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { doing, startRecording } from './support.js';

describe.each(nodeServers)('on $name', (server) => {
  test('a kept connection serves one delivery after another, also after refused ones', async () => {
    const ports = new Set<number | undefined>();
    const before = doing((request) => ports.add(request.socket.remotePort));
    const { url, handled } = await startRecording(server, { bodyLimitBytes: 2_000 }, { before: [before] });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => {
      agent.destroy();
    });
    const good = JSON.stringify(transferSucceeded());
    const statuses = [];
    const sent = [[good], ['{'], [good, 'PUT'], ['x'.repeat(19_000), 'PUT'], [good]] as const;
    for (const [body, method = 'POST'] of sent) statuses.push((await post(url, body, { agent, method })).status);
    expect(statuses).toEqual([200, 400, 405, 405, 200]);
    expect(ports.size).toBe(1);
    expect(handled).toHaveLength(1);
  });

  test('a response to HEAD does not wait for the body that the request announces', async () => {
    let response: ServerResponse | undefined;
    const before = doing((_request, given) => (response = given));
    const { url } = await startRecording(server, {}, { before: [before] });
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

  test.each([
    ['alone', []],
    ['before express.json()', [server.parsers.json()]],
  ])('the handler, confirm and verifier see the AsyncLocalStorage of a middleware %s', async (_how, parsers) => {
    const storage = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const see = (name: string) => () => seen.push([name, storage.getStore()]) > 0;
    const options = Object.fromEntries(
      ['verify', 'confirm', 'onSuccess', 'onOutcome'].map((name) => [name, see(name)]),
    );
    const before: Middleware = (request, _response, next) => {
      storage.run(String(request.headers['x-request-id']), next);
    };
    // Parsers of Express keep it for themselves where they must: those of today do not lose it.
    const { url } = await startRecording(server, options, { before: [before, ...parsers] });
    await post(url, transferSucceeded(), { headers: { 'X-Request-Id': 'request-7' } });
    expect(seen).toEqual(Object.keys(options).map((name) => [name, 'request-7']));
  });
});

test('a plain server responds at every address', async () => {
  const { url, handled } = await startRecording(plainServer);
  expect((await post(`${url}/a/b/c`, transferSucceeded())).status).toBe(200);
  expect((await post(new URL('/', url).href, {})).body).toBe(
    errorBody(400, 'This is not the expected callback. See event.'),
  );
  expect(handled).toHaveLength(1);
});
