import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  memoryStore,
  transferCallbackListener,
  transferCallbackReceiver,
  urlToken,
  type CallbackStore,
} from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import {
  edges,
  errorBody,
  plainEdge,
  head,
  overSocket,
  post,
  statusOf,
  witness,
  type Edge,
  type Middleware,
} from '../support/http.js';

async function start(edge: Edge, ...args: Parameters<Edge['start']>) {
  const started = await edge.start(...args);
  onTestFinished(started.close);
  return started;
}

/** A promise, and what settles it. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { open, opened };
}

const unanswerable = { level: 'error', message: 'A transfer callback could not be answered.' };

describe.each(edges)('on $name', (edge) => {
  describe('when another middleware has already answered', () => {
    const early: [string, (response: Parameters<Middleware>[1]) => void][] = [
      ['with 503', (response) => response.writeHead(503).end('too slow')],
      ['with half an answer', (response) => response.writeHead(200).write('all is')],
      [
        'by cutting the connection',
        (response) => {
          response.destroy();
        },
      ],
    ];
    test.each(early)('%s, nothing breaks, and the handler has run', async (_how, answer) => {
      const { options, handled, logged } = witness();
      const running = gate();
      const begun = gate();
      const { url, passedOn } = await start(
        edge,
        {
          ...options,
          async onSuccess(callback) {
            begun.open();
            await running.opened;
            options.onSuccess(callback);
          },
        },
        {
          before: [
            (request, response, next) => {
              if (request.headers['x-slow'] !== undefined) {
                void begun.opened.then(() => {
                  answer(response);
                  running.open();
                });
              }
              next();
            },
          ],
        },
      );
      const callback = transferSucceeded();
      const bytes = JSON.stringify(callback);
      await overSocket(url, (socket) => {
        const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length, 'X-Slow': 'yes' };
        socket.write(head(url, headers) + bytes);
      });
      await vi.waitFor(() => {
        expect(handled).toEqual([callback]);
      });
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
      expect(passedOn).toEqual([]);
      expect(logged.filter((line) => line.message !== unanswerable.message)).toEqual([]);
    });

    test('before the package saw the request, the log says so, and it says no more', async () => {
      const { options, logged } = witness();
      const { url, passedOn } = await start(edge, options, {
        before: [
          (_request, response, next) => {
            response.writeHead(418).end('teapot');
            next();
          },
        ],
      });
      const answer = await post(url, transferSucceeded());
      expect([answer.status, answer.body]).toEqual([418, 'teapot']);
      await vi.waitFor(() => {
        expect(logged).toMatchObject([
          {
            ...unanswerable,
            details: { delivery: expect.any(String) as string, err: { code: 'ERR_HTTP_HEADERS_SENT' } },
          },
        ]);
      });
      expect(passedOn).toEqual([]);
    });
  });

  test.each(['writeHead', 'end'] as const)(
    'a response whose %s throws is cut off, never acknowledged',
    async (method) => {
      const { options, handled, logged } = witness();
      const { url, passedOn } = await start(edge, options, {
        before: [
          (request, response, next) => {
            if (request.headers['x-patched'] !== undefined) {
              response[method] = () => {
                throw Object.assign(new Error('patched badly'), { status: 200 });
              };
            }
            next();
          },
        ],
      });
      const callback = transferSucceeded();
      await expect(post(url, callback, { headers: { 'X-Patched': 'yes' } })).rejects.toMatchObject({
        code: 'ECONNRESET',
      });
      expect(logged).toMatchObject([{ ...unanswerable, details: { err: { message: 'patched badly' } } }]);
      expect(passedOn).toEqual([]);
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
      expect(handled).toEqual([callback]);
    },
  );

  test('a client that hangs up changes nothing: the handler ends, and the next attempt learns of it', async () => {
    const { options, handled, logged } = witness();
    const running = gate();
    const begun = gate();
    const { url } = await start(edge, {
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

  const wrappers: [string, (parsers: Edge['parsers']) => Middleware[]][] = [
    ['alone', () => []],
    ['before express.json()', (express) => [express.json()]],
    ['before express.raw()', (express) => [express.raw({ type: '*/*' })]],
  ];
  test.each(wrappers)(
    'the handler, confirm and verifier see the AsyncLocalStorage of a middleware %s',
    async (_how, parsers) => {
      const { options } = witness();
      const storage = new AsyncLocalStorage<string>();
      const seen: Record<string, string | undefined> = {};
      const { url } = await start(
        edge,
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
            ...parsers(edge.parsers),
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

  test('a connection that is kept serves one delivery after another, refused ones among them', async () => {
    const { options, handled } = witness();
    const { url } = await start(edge, { ...options, bodyLimitBytes: 2_000 });
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

  test('deliveries written one behind the other on one connection are answered in order', async () => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const first = JSON.stringify(transferSucceeded({ externalId: 'first' }));
    const last = JSON.stringify(transferSucceeded({ externalId: 'last' }));
    const answer = await overSocket(url, (socket) => {
      const headOf = (body: string): string =>
        head(url, { 'Content-Type': 'application/json', 'Content-Length': body.length });
      for (const body of [first, '{']) socket.write(headOf(body).replace('Connection: close\r\n', '') + body);
      socket.write(headOf(last) + last);
    });
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400', 'HTTP/1.1 200']);
    expect(handled.map(({ data }) => data.externalId)).toEqual(['first', 'last']);
  });

  test.each([
    ['both lengths', { 'Content-Length': 4, 'Transfer-Encoding': 'chunked' }, '{}'],
    ['a Content-Length that is no number', { 'Content-Length': 'many' }, '{}'],
    ['a chunk length that is no number', { 'Transfer-Encoding': 'chunked' }, 'zz\r\n{}\r\n0\r\n\r\n'],
    ['a negative Content-Length', { 'Content-Length': -1 }, '{}'],
  ])('a request with %s is refused before it runs anything, and the server goes on', async (_what, headers, body) => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const answer = await overSocket(url, (socket) =>
      socket.write(head(url, { 'Content-Type': 'application/json', ...headers }) + body),
    );
    expect([0, 400]).toContain(statusOf(answer));
    expect(handled).toEqual([]);
    expect((await post(url, transferSucceeded())).status).toBe(200);
  });

  test('a sender that asks before it sends its body is told to go on', async () => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const body = JSON.stringify(transferSucceeded());
    const answer = await overSocket(url, async (socket) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length, Expect: '100-continue' };
      socket.write(head(url, headers));
      await once(socket, 'data');
      socket.write(body);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
    expect(handled).toHaveLength(1);
  });
});

describe('in production', () => {
  const open = 'Transfer callbacks are believed from anyone: set `verify` or `confirm`.';
  const local = 'Transfer callbacks are deduplicated within this process only: use a shared store.';
  const memory = memoryStore();
  const shared: CallbackStore = { claim: (key, request) => memory.claim(key, request) };
  const { onSuccess, onFailed } = witness().options;
  const verify = urlToken('a-secret-long-enough');
  const confirm = <C>(callback: C): C => callback;

  const cases: [string, object, string[]][] = [
    ['neither verify nor confirm, on the memory store', { store: memoryStore() }, [local, open]],
    ['neither verify nor confirm', { store: shared }, [open]],
    ['verify', { store: shared, verify }, []],
    ['confirm', { store: shared, confirm }, []],
    ['verify, on the memory store', { store: memoryStore(), verify }, [local]],
  ];

  describe.each(edges)('on $name', (edge) => {
    test.each(cases)('%s: warns once, when it is made, of what is missing', async (_what, given, warnings) => {
      vi.stubEnv('NODE_ENV', 'production');
      onTestFinished(() => {
        vi.unstubAllEnvs();
      });
      const { options, logged } = witness();
      const { url } = await start(edge, { ...options, ...given });
      const expected = warnings.map((message) => ({ level: 'warn', message, details: {} }));
      expect(logged).toEqual(expected);
      if (!('verify' in given)) {
        await post(url, transferSucceeded());
        await post(url, transferSucceeded());
      }
      expect(logged).toEqual(expected);
    });
  });

  test('a receiver made before brings its own confirm', () => {
    vi.stubEnv('NODE_ENV', 'production');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const { logged, options } = witness();
    transferCallbackListener({
      receiver: transferCallbackReceiver({ onSuccess, onFailed, store: shared, confirm, logger: options.logger }),
    });
    expect(logged).toEqual([]);
  });

  test.each([undefined, 'development', 'test', 'Production'])('NODE_ENV %s warns of nothing', (environment) => {
    vi.stubEnv('NODE_ENV', environment);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const { options, logged } = witness();
    transferCallbackListener(options);
    expect(logged).toEqual([]);
  });
});

test('a plain server answers every address it hands over', async () => {
  const { options, handled } = witness();
  const { url } = await start(plainEdge, options);
  expect((await post(`${url}/a/b/c`, transferSucceeded())).status).toBe(200);
  expect((await post(new URL('/', url).href, {})).body).toBe(
    errorBody(400, 'This is not a documented callback: see event.'),
  );
  expect(handled).toHaveLength(1);
});
