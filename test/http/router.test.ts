import { describe, expect, onTestFinished, test } from 'vitest';
import type { Express, RequestHandler } from 'express';
import {
  basicAuth,
  headerToken,
  ipAllowList,
  transferCallbackReceiver,
  transferToken,
  urlToken,
  type TransferCallback,
  type Verifier,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import {
  edges,
  errorBody,
  expressEdges,
  head,
  mountPath,
  notFoundBody,
  overSocket,
  post,
  serve,
  statusOf,
  witness,
  type Edge,
} from '../support/http.js';

async function start(edge: Edge, ...args: Parameters<Edge['start']>) {
  const started = await edge.start(...args);
  onTestFinished(started.close);
  return started;
}

/** Sends a request over a socket, because a client's URL parser would tidy the path; returns the response as text. */
function postTo(url: string, target: string, callback: TransferCallback, method = 'POST'): Promise<string> {
  const bytes = JSON.stringify(callback);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
  return overSocket(url, (socket) => {
    socket.write(head(url, headers, method).replace(mountPath, target) + bytes);
  });
}

describe.each(edges)('on $name', (edge) => {
  test('a callback runs the handler of its event, once, with what was sent and where it came from', async () => {
    const { options } = witness();
    const calls: unknown[] = [];
    const { url } = await start(edge, {
      ...options,
      onSuccess: (callback, { source, tx }) => calls.push(['onSuccess', callback, source, tx]),
      onFailed: (callback, { source, tx }) => calls.push(['onFailed', callback, source, tx]),
    });
    const callbacks = [
      transferSucceeded(),
      transferFailed({ paymentMethod: 'bank', walletNumber: null, bankAccount: { iban: 'CM21' } }),
    ];
    for (const callback of callbacks) {
      expect((await post(url, callback)).body).toBe('{"outcome":"processed"}');
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    }
    expect(calls).toEqual([
      ['onSuccess', callbacks[0], 'http', undefined],
      ['onFailed', callbacks[1], 'http', undefined],
    ]);
  });

  test.each(['', '/', '?q=1', '/?q=1'])('a callback at the mount path and %s is a delivery', async (below) => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const callback = transferSucceeded();
    expect(statusOf(await postTo(url, mountPath + below, callback))).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test('nothing at the mount path is left to the next middleware, whatever the method', async () => {
    const { url, passedOn } = await start(edge, witness().options);
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      for (const below of ['', '/']) {
        const answer = await post(url + below, {}, { method });
        expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
        expect(answer.body).toBe(errorBody(405, 'A callback is a POST.'));
      }
    }
    expect(passedOn).toEqual([]);
  });

  test('two of them on one receiver share one record of what was done', async () => {
    const { options, handled } = witness();
    const receiver = transferCallbackReceiver(options);
    const first = await start(edge, { receiver });
    const second = await start(edge, { receiver });
    const callback = transferSucceeded();
    expect((await post(first.url, callback)).body).toBe('{"outcome":"processed"}');
    expect((await post(second.url, callback)).body).toBe('{"outcome":"duplicate"}');
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate', source: 'direct' });
    expect(handled).toEqual([callback]);
  });
});

describe.each(expressEdges)('on $name', (edge) => {
  const readers: [string, Verifier][] = [
    ['urlToken', urlToken('a-secret-long-enough')],
    ['transferToken', transferToken('a-secret-long-enough')],
    ['a verifier that says it reads the path', Object.assign(() => true, { readsPath: true })],
  ];
  const others: [string, Verifier | undefined][] = [
    ['none', undefined],
    ['a function', () => true],
    ['headerToken', headerToken('X-Token', 'a-secret-long-enough')],
    ['basicAuth', basicAuth({ username: 'service', password: 'password' })],
    ['ipAllowList', ipAllowList(['0.0.0.0/0'])],
    ['a verifier that says it does not read the path', Object.assign(() => true, { readsPath: false })],
  ];
  const elsewhere = [
    `${mountPath}/a/b`,
    `${mountPath}/a/b/`,
    `${mountPath}/a//`,
    `${mountPath}/a/b?q=1`,
    `${mountPath}x`,
    '/callbacks',
    '/',
  ];
  const oneBelow = ['/token', '/token/', '/token?q=/a/b', '/%2F', '/a%20b', '/..%2f', '/t?'].map(
    (below) => mountPath + below,
  );
  const methods = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

  async function expectLeftToApp(verify: Verifier | undefined, paths: string[], methods: string[]): Promise<void> {
    const { options, handled, logged } = witness();
    const { url } = await start(edge, { ...options, verify });
    for (const path of paths) {
      for (const method of methods) {
        const text = await postTo(url, path, transferSucceeded(), method);
        expect([path, method, statusOf(text)]).toEqual([path, method, 404]);
        if (method !== 'HEAD') expect(text).toContain(notFoundBody);
      }
    }
    expect(handled).toEqual([]);
    expect(logged).toEqual([]);
  }

  test.each([...readers, ...others])('with %s as verifier, other paths are left to the app', async (_name, verify) => {
    await expectLeftToApp(verify, elsewhere, ['POST', ...methods]);
  });

  test.each(readers)('with %s as verifier, POST one segment below is a delivery', async (_name, verify) => {
    const { options } = witness();
    const { url } = await start(edge, { ...options, verify });
    for (const path of oneBelow) {
      expect([path, statusOf(await postTo(url, path, transferSucceeded()))]).not.toEqual([path, 404]);
    }
    // Alone or as one of several.
    const listed = await start(edge, { ...options, verify: [() => true, verify] });
    expect(statusOf(await postTo(listed.url, `${mountPath}/token`, transferSucceeded()))).not.toBe(404);
  });

  test.each(readers)(
    'with %s as verifier, other methods one segment below are left to the app',
    async (_name, verify) => {
      await expectLeftToApp(verify, oneBelow, methods);
    },
  );

  test.each(others)('with %s as verifier, one segment below is left to the app', async (_name, verify) => {
    await expectLeftToApp(verify, oneBelow, ['POST', ...methods]);
  });

  test('a request target with scheme and host is the same address', async () => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const callback = transferSucceeded();
    const answer = await postTo(url, url, callback);
    expect(statusOf(answer)).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test("an error of an earlier middleware is the app's own affair", async () => {
    const { options, handled } = witness();
    const { url, passedOn } = await start(edge, options, {
      before: [
        (_request, _response, next) => {
          next(new Error('no session'));
        },
      ],
    });
    expect((await post(url, transferSucceeded())).body).toBe('all is well');
    expect(passedOn).toHaveLength(1);
    expect(handled).toEqual([]);
  });
});

describe.each(expressEdges)('in an app of its own on $name', ({ framework, router }) => {
  const secret = 'a-secret-of-the-first-tenant';
  const page = (text: string): RequestHandler => {
    return (_request, response) => {
      response.send(text);
    };
  };

  async function serveApp(app: Express): Promise<string> {
    const { url, close } = await serve(app);
    onTestFinished(close);
    return url;
  }

  test('routes of the app below the mount path are served, whichever comes first', async () => {
    for (const routerIsFirst of [true, false]) {
      const { options, handled } = witness();
      const app = framework();
      const mount = (): unknown => app.use('/callbacks', router(options));
      if (routerIsFirst) mount();
      app.get('/callbacks/health', page('healthy'));
      app.post('/callbacks/other-provider', page('another provider'));
      if (!routerIsFirst) mount();
      const url = await serveApp(app);
      expect((await post(`${url}/callbacks/health`, '', { method: 'GET' })).body).toBe('healthy');
      expect((await post(`${url}/callbacks/other-provider`, transferSucceeded())).body).toBe('another provider');
      expect((await post(`${url}/callbacks`, transferSucceeded())).status).toBe(200);
      expect(handled).toHaveLength(1);
    }
  });

  test('mounted at the root, it takes the root only', async () => {
    const { options, handled } = witness();
    const app = framework().use(router(options));
    app.get('/health', page('healthy'));
    app.post('/login', page('welcome'));
    const url = await serveApp(app);
    expect((await post(`${url}/health`, '', { method: 'GET' })).body).toBe('healthy');
    expect((await post(`${url}/login`, {})).body).toBe('welcome');
    expect((await post(url, '', { method: 'GET' })).status).toBe(405);
    expect((await post(url, transferSucceeded())).status).toBe(200);
    expect(handled).toHaveLength(1);
  });

  test('of two routers, one below the mount path of the other, each receives its own callbacks', async () => {
    const [outer, inner] = [witness(), witness()];
    const app = framework();
    app.use('/callbacks', router(outer.options));
    app.use('/callbacks/acme', router({ ...inner.options, verify: urlToken(secret) }));
    const url = await serveApp(app);
    const [first, second] = [transferSucceeded(), transferSucceeded()];
    expect((await post(`${url}/callbacks`, first)).status).toBe(200);
    expect((await post(`${url}/callbacks/acme/${secret}`, second)).status).toBe(200);
    expect((await post(`${url}/callbacks/acme`, second)).status).toBe(401);
    expect([outer.handled, inner.handled]).toEqual([[first], [second]]);
  });

  test('routers work below routers and in sub-apps, with parameters in their mount path, side by side', async () => {
    const { options, handled } = witness();
    const callbacks = framework.Router();
    callbacks.use('/open', router(options));
    callbacks.use('/guarded', router({ ...options, verify: urlToken(secret) }));
    const subApp = framework().use('/callbacks', callbacks);
    const url = await serveApp(framework().use('/:tenant', subApp));

    const callback = transferSucceeded();
    expect((await post(`${url}/acme/callbacks/open`, callback)).status).toBe(200);
    expect((await post(`${url}/acme/callbacks/open/${secret}`, callback)).status).toBe(404);
    expect((await post(`${url}/acme/callbacks/guarded`, callback)).status).toBe(401);
    expect((await post(`${url}/acme/callbacks/guarded/${secret}`, callback)).status).toBe(200);
    expect((await post(`${url}/acme/callbacks/guarded/${secret}/`, callback)).status).toBe(200);
    expect(handled).toEqual([callback]);
  });
});

describe('options of the router and the listener', () => {
  const { options } = witness();
  const receiver = transferCallbackReceiver(options);
  const known = 'store, onSuccess, onFailed, confirm, schema, onOutcome, logger';
  const times =
    'verifyTimeoutMs, confirmTimeoutMs, inFlightWaitMs, leaseMs, handlerTimeoutMs, storeTimeoutMs, retentionMs';

  const wrong: [string, object, string][] = [
    [
      'verify: null',
      { ...options, verify: null },
      'Expected `verify` to be a function or a list of at least one, got null.',
    ],
    [
      'verify: true',
      { ...options, verify: true },
      'Expected `verify` to be a function or a list of at least one, got true.',
    ],
    [
      'verify: []',
      { ...options, verify: [] },
      'Expected `verify` to be a function or a list of at least one, got an array.',
    ],
    [
      'a list with a gap',
      { ...options, verify: [() => true, undefined] },
      'Expected `verify` to be a function or a list of at least one, got an array.',
    ],
    [
      'bodyLimitBytes: 0',
      { ...options, bodyLimitBytes: 0 },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got 0.',
    ],
    [
      'bodyLimitBytes: "100kb"',
      { ...options, bodyLimitBytes: '100kb' },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got "100kb".',
    ],
    [
      'bodyLimitBytes: 1.5',
      { receiver, bodyLimitBytes: 1.5 },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got 1.5.',
    ],
    [
      'an option that does not exist',
      { ...options, verifier: () => true },
      `Unknown option \`verifier\`; known are verify, bodyLimitBytes, ${known}, ${times}.`,
    ],
    [
      "a receiver and a receiver's option",
      { receiver, store: options.store },
      'Unknown option `store`; known are verify, bodyLimitBytes, receiver.',
    ],
    [
      'no store',
      { ...options, store: undefined },
      'Expected `store` to be a store, such as memoryStore(), redisStore(client) or postgresStore(pool), got undefined.',
    ],
    [
      'no handler',
      { store: options.store, onSuccess: () => 1 },
      'Expected `onFailed` to be a function, got undefined.',
    ],
  ];

  describe.each(edges)('on $name', (edge) => {
    test.each(wrong)('%s is refused by name', async (_what, given, message) => {
      await expect(edge.start(given as Parameters<Edge['start']>[0])).rejects.toMatchObject({
        name: 'TransferCallbackError',
        code: 'INVALID_ARGUMENT',
        message,
      });
    });

    test.each([
      ['nothing', undefined],
      ['null', null],
      ['a text', 'https://example.test'],
      ['a receiver that is none', { receiver: {} }],
      ['a receiver without options', { receiver: { receive: () => undefined } }],
      ['a receiver that is null', { receiver: null }],
    ])('%s instead of options is refused', async (_what, given) => {
      await expect(edge.start(given as unknown as Parameters<Edge['start']>[0])).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    });
  });
});
