import type { Express, RequestHandler, Router } from 'express';
import { describe, expect, test } from 'vitest';
import { transferToken, urlToken, type Verifier } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/helpers/containing.js';
import { post, type Sent } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { expressServers, mountPath, notFoundBody } from '../support/servers/http-servers.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { startRecording } from './support.js';

/** Sends a callback over a socket, because a client's URL parser would tidy the path; returns the response as text. */
function postTo(url: string, target: string, method = 'POST'): Promise<string> {
  const bytes = JSON.stringify(transferSucceeded());
  const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
  return overSocket(url, (socket) => {
    socket.write(head(url, headers, method).replace(mountPath, target) + bytes);
  });
}

describe.each(expressServers)('on $name', (server) => {
  const readers: [string, () => Verifier][] = [
    ['urlToken', () => urlToken('a-secret-long-enough')],
    ['a verifier that declares that it reads the path', () => Object.assign(() => true, { readsPath: true })],
  ];
  const others: [string, Verifier | undefined][] = [
    ['none', undefined],
    ['a function', () => true],
    ['a verifier that declares that it does not read the path', Object.assign(() => true, { readsPath: false })],
  ];
  const elsewhere = [
    ...['/a/b', '/a/b/', '/a//', '/a/b?q=1', 'x'].map((below) => mountPath + below),
    '/callbacks',
    '/',
  ];
  const oneBelow = ['/token', '/token/', '/token?q=/a/b', '/%2F', '/a%20b', '/..%2f', '/t?'].map(
    (below) => mountPath + below,
  );
  const methods = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'];

  async function expectLeftToApp(verify: Verifier | undefined, paths: string[], methods: string[]): Promise<void> {
    const { url, handled, logged } = await startRecording(server, { ...(verify && { verify }) });
    for (const path of paths) {
      for (const method of methods) {
        const text = await postTo(url, path, method);
        expect([path, method, parseStatus(text)]).toEqual([path, method, 404]);
        if (method !== 'HEAD') expect(text).toContain(notFoundBody);
      }
    }
    expect(handled).toEqual([]);
    expect(logged).toEqual([]);
  }

  test.each(others)('with %s as verifier, other paths are left to the app', async (_name, verify) => {
    await expectLeftToApp(verify, [...elsewhere, ...oneBelow], ['POST', 'PUT']);
  });

  test.each(readers)('with %s as verifier, POST one segment below is a delivery', async (_name, make) => {
    const { url } = await startRecording(server, { verify: make() });
    for (const path of oneBelow) {
      expect([path, parseStatus(await postTo(url, path))]).not.toEqual([path, 404]);
    }
    // Alone or as one of several.
    const listed = await startRecording(server, { verify: [() => true, make()] });
    expect(parseStatus(await postTo(listed.url, `${mountPath}/token`))).not.toBe(404);
  });

  test.each(readers)(
    'with %s as verifier, other paths are left to the app, and other methods one segment below',
    async (_name, make) => {
      await expectLeftToApp(make(), elsewhere, ['POST', 'PUT']);
      await expectLeftToApp(make(), oneBelow, methods);
    },
  );

  test('a callback at the mount path is a delivery, however the path is written', async () => {
    const { url, handled } = await startRecording(server);
    const targets = [mountPath, `${mountPath}/`, `${mountPath}?q=1`, `${mountPath}/?q=1`, url];
    for (const target of targets) {
      expect([target, parseStatus(await postTo(url, target))]).toEqual([target, 200]);
    }
    expect(handled).toHaveLength(targets.length);
  });
});

describe.each(expressServers)('in a separate app on $name', ({ framework, router }) => {
  const secret = 'a-secret-of-the-first-tenant';

  type Declare = (app: Express, callbacks: Router) => unknown;
  /** Serves an app in which the router is declared so. */
  async function serveDeclared(declare: Declare) {
    const { options, handled, logged } = recordingOptions();
    const app = framework();
    declare(app, router(options));
    return { url: await serveForTest(app), handled, logged };
  }

  const routes: [string, Declare][] = [
    ['app.post', (app, callbacks) => app.post('/a/b', callbacks)],
    ['app.all', (app, callbacks) => app.all('/a/b', callbacks)],
    ['app.post with a list', (app, callbacks) => app.post('/a/b', [framework.json(), callbacks])],
    ['a mounted router', (app, callbacks) => app.use('/a', framework.Router().post('/b', callbacks))],
    ['a sub-app', (app, callbacks) => app.use('/a', framework().post('/b', callbacks))],
    ['app.post behind other routes', (app, callbacks) => app.all(/./, passOn).post('/a/b', callbacks)],
  ];
  const passOn: RequestHandler = (_request, _response, next) => {
    next();
  };

  test.each(routes)('a callback that comes by the route of %s is handled once', async (_declared, declare) => {
    const { url, handled } = await serveDeclared(declare);
    const callback = transferSucceeded();
    expect((await post(`${url}/a/b`, callback)).body).toBe('{"outcome":"processed"}');
    expect((await post(`${url}/a/b/?q=1`, callback)).body).toBe('{"outcome":"duplicate"}');
    expect((await post(`${url}/a`, callback)).status).toBe(404);
    expect(handled).toEqual([callback]);
  });

  test('the path of a route may end in the token of a verifier', async () => {
    const { options, handled } = recordingOptions();
    const perTransfer = transferToken(secret);
    const app = framework();
    app.post('/shared/:token', router({ ...options, verify: urlToken(secret) }));
    app.post('/callbacks/transfers/:token', router({ ...options, verify: perTransfer }));
    const url = await serveForTest(app);
    const [first, second] = [transferSucceeded(), transferSucceeded({ externalId: 'payout-1' })];
    for (const wrong of ['a-guess', `${secret}x`, '%2F']) {
      expect((await post(`${url}/shared/${wrong}`, first)).status).toBe(401);
    }
    expect((await post(`${url}/shared/${secret}/?q=1`, first)).status).toBe(200);
    expect((await post(perTransfer.urlFor(`${url}/callbacks/transfers`, 'payout-2'), second)).status).toBe(401);
    expect((await post(perTransfer.urlFor(`${url}/callbacks/transfers`, 'payout-1'), second)).status).toBe(200);
    expect(handled).toEqual([first, second]);
  });

  test('a verifier of yours reads the parameters of the route', async () => {
    const verify = ({ params }: { params: Record<string, unknown> }): boolean => params.tenant === 'acme';
    const callbacks = router({ ...recordingOptions().options, verify });
    const url = await serveForTest(framework().post('/:tenant/callbacks', callbacks));
    expect((await post(`${url}/acme/callbacks`, transferSucceeded())).status).toBe(200);
    expect((await post(`${url}/other/callbacks`, transferSucceeded())).status).toBe(401);
  });

  test('app.post leaves other methods to the app, and app.all responds to them with 405', async () => {
    const { url, logged } = await serveDeclared((app, callbacks) =>
      app.post('/posted', callbacks).all('/all', callbacks),
    );
    for (const method of ['GET', 'PUT']) expect((await post(`${url}/posted`, {}, { method })).status).toBe(404);
    expect(logged).toEqual([]);
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await post(`${url}/all`, {}, { method });
      expect([response.status, response.headers.allow]).toEqual([405, 'POST']);
    }
  });

  const wrapped: [string, Declare][] = [
    ['a function', (app, callbacks) => app.post('/a', (...given) => void callbacks(...given))],
    ['a router', (app, callbacks) => app.post('/a', framework.Router().use(callbacks))],
    ['an app', (app, callbacks) => app.post('/a', framework().use(callbacks))],
    ['a route that a middleware hides', (app, callbacks) => app.post('/a', hideRoute, callbacks)],
  ];
  const hideRoute: RequestHandler = (request, _response, next) => {
    request.route = undefined;
    next();
  };
  test.each(wrapped)('a router in %s leaves a callback to the app, and warns once', async (_what, declare) => {
    const { url, handled, logged } = await serveDeclared(declare);
    for (const id of ['1', '2']) expect((await post(`${url}/a`, transferSucceeded({ id }))).status).toBe(404);
    expect(handled).toEqual([]);
    expect(logged).toMatchObject([{ level: 'warn', message: containing('pass the router itself to `app.post`') }]);
  });

  const left: [string, (app: Express, callbacks: Router, other: Router) => unknown][] = [
    ['next', (app, callbacks, other) => app.post('/a/b', skipRoute, other).use('/a', callbacks)],
    ['app.param', (app, callbacks, other) => app.param('id', skipRoute).post('/a/:id', other).use('/a', callbacks)],
    [
      'a handler of the same name',
      (app, callbacks) =>
        app
          .post('/a/b', Object.defineProperty(passOn.bind(null), 'name', { value: 'transferCallbackRouter' }))
          .use('/a', callbacks),
    ],
  ];
  const skipRoute: RequestHandler = (_request, _response, next) => {
    next('route');
  };
  test.each(left)(
    'a route that was left by %s does not make another router take its request',
    async (_how, declare) => {
      const { options, handled } = recordingOptions();
      const app = framework();
      declare(app, router(options), router(options));
      app.all('/a/b', (_request, response) => void response.send('a page of the app'));
      const url = await serveForTest(app);
      expect((await post(`${url}/a/b`, transferSucceeded())).body).toBe('a page of the app');
      expect(handled).toEqual([]);
    },
  );

  test('a router under app.use leaves other pages to the app, also after a route that has called next', async () => {
    const { options, handled } = recordingOptions();
    const app = framework().all(/./, passOn);
    app.use('/callbacks', router(options));
    app.use('/guarded', router({ ...options, verify: urlToken(secret) }));
    app.use(router(options));
    app.use((_request, response) => {
      response.send('a page of the app');
    });
    const url = await serveForTest(app);
    for (const path of ['callbacks/health', 'guarded/a/b', 'login']) {
      expect((await post(`${url}/${path}`, transferSucceeded())).body).toBe('a page of the app');
    }
    expect(handled).toEqual([]);
    for (const path of ['callbacks', `guarded/${secret}`, '']) {
      expect((await post(`${url}/${path}`, transferSucceeded())).status).toBe(200);
    }
    expect(handled).toHaveLength(3);
  });

  const xml: RequestHandler = async (request, _response, next) => {
    await request.toArray();
    request.body = transferSucceeded();
    next();
  };
  const otherwise: [string, Declare, string, Sent][] = [
    [
      'JSON of another type',
      (app, callbacks) => app.post('/a', framework.json({ type: () => true }), callbacks),
      JSON.stringify(transferSucceeded()),
      { headers: { 'Content-Type': 'application/vnd.api+json' } },
    ],
    ['XML', (app, callbacks) => app.post('/a', xml, callbacks), '<a/>', { headers: { 'Content-Type': 'text/xml' } }],
    [
      'PUT',
      (app, callbacks) => app.put('/a', asPost, callbacks),
      JSON.stringify(transferSucceeded()),
      { method: 'PUT' },
    ],
  ];
  const asPost: RequestHandler = (request, _response, next) => {
    request.method = 'POST';
    next();
  };
  test.each(otherwise)(
    'a service that sends %s is received behind a middleware',
    async (_what, declare, body, sent) => {
      const { url } = await serveDeclared(declare);
      expect((await post(`${url}/a`, body, sent)).body).toBe('{"outcome":"processed"}');
    },
  );

  /** How tracers wrap the handlers of a route: what each leaves of the handler on its wrapper. */
  const wrappers: [string, (wrapper: RequestHandler, handler: RequestHandler) => unknown][] = [
    ['their names', (wrapper, { name }) => Object.defineProperty(wrapper, 'name', { value: name })],
    ['their properties', (wrapper, handler) => Object.assign(wrapper, handler)],
  ];
  test.each(wrappers)('a tracer may wrap the handlers of a route and keep only %s', async (_kept, copy) => {
    const { url, handled } = await serveDeclared((app, callbacks) => {
      const wrapper: RequestHandler = (...args) => void callbacks(...args);
      copy(wrapper, callbacks);
      app.post('/a/b', wrapper);
    });
    expect((await post(`${url}/a/b`, transferSucceeded())).status).toBe(200);
    expect(handled).toHaveLength(1);
  });
});
