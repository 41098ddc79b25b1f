import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { nodeServers, plainServer, type NodeServer, type Middleware } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { head, overSocket } from '../support/sockets.js';
import { recordingOptions } from '../support/recording-options.js';
import { gate, start } from './support.js';

describe.each(nodeServers)('on $name', (server) => {
  test('a client that hangs up changes nothing: the handler ends, and the next attempt is a duplicate', async () => {
    const { options, handled, logged } = recordingOptions();
    const running = gate();
    const begun = gate();
    const { url } = await start(server, {
      ...options,
      async onSuccess(callback, { signal }) {
        begun.open();
        await running.opened;
        signal.throwIfAborted();
        options.onSuccess(callback);
      },
    });
    const callback = transferSucceeded();
    const bytes = JSON.stringify(callback);
    await overSocket(url, async (socket) => {
      socket.write(head(url, { 'Content-Type': 'application/json', 'Content-Length': bytes.length }) + bytes);
      await begun.opened;
      socket.destroy();
    });
    const retried = post(url, callback);
    running.open();
    expect((await retried).body).toBe('{"outcome":"duplicate"}');
    expect(handled).toEqual([callback]);
    expect(logged).toEqual([]);
  });

  const wrappers: [string, (parsers: NodeServer['parsers']) => Middleware[]][] = [
    ['alone', () => []],
    ['before express.json()', (express) => [express.json()]],
    ['before express.raw()', (express) => [express.raw({ type: '*/*' })]],
  ];
  test.each(wrappers)(
    'the handler, confirm and verifier see the AsyncLocalStorage of a middleware %s',
    async (_how, parsers) => {
      const { options } = recordingOptions();
      const storage = new AsyncLocalStorage<string>();
      const seen: Record<string, string | undefined> = {};
      const { url } = await start(
        server,
        {
          ...options,
          verify() {
            seen.verify = storage.getStore();
            return true;
          },
          confirm(callback) {
            seen.confirm = storage.getStore();
            return callback;
          },
          onSuccess() {
            seen.onSuccess = storage.getStore();
          },
          onOutcome() {
            seen.onOutcome = storage.getStore();
          },
        },
        {
          before: [
            (request, _response, next) => {
              storage.run(String(request.headers['x-request-id']), next);
            },
            // Parsers of Express keep it for themselves where they must: those of today do not lose it.
            ...parsers(server.parsers),
          ],
        },
      );
      await post(url, transferSucceeded(), { headers: { 'X-Request-Id': 'request-7' } });
      expect(seen).toEqual({
        verify: 'request-7',
        confirm: 'request-7',
        onSuccess: 'request-7',
        onOutcome: 'request-7',
      });
    },
  );
});

test('a plain server responds at every address', async () => {
  const { options, handled } = recordingOptions();
  const { url } = await start(plainServer, options);
  expect((await post(`${url}/a/b/c`, transferSucceeded())).status).toBe(200);
  expect((await post(new URL('/', url).href, {})).body).toBe(
    errorBody(400, 'This is not a documented callback: see event.'),
  );
  expect(handled).toHaveLength(1);
});
