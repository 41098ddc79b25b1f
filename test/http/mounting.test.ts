import { describe, expect, onTestFinished, test } from 'vitest';
import type { Express, RequestHandler, Router } from 'express';
import { transferToken, urlToken } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { z } from 'zod/v4';
import { expressServers } from '../support/http-servers.js';
import { errorBody, post, type Sent } from '../support/post.js';
import { serve } from '../support/serve.js';
import { recordingOptions } from '../support/recording-options.js';

describe.each(expressServers)('in a separate app on $name', ({ framework, router }) => {
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

  test('routes of the app below the mount path are served, in either order', async () => {
    for (const routerIsFirst of [true, false]) {
      const { options, handled } = recordingOptions();
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

  test('a router at the root takes the root only', async () => {
    const { options, handled } = recordingOptions();
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

  test('two routers, one below the mount path of the other, each receive their own callbacks', async () => {
    const [outer, inner] = [recordingOptions(), recordingOptions()];
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
    const { options, handled } = recordingOptions();
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

  const routes: [string, (app: Express, callbacks: Router) => unknown][] = [
    ['app.post', (app, callbacks) => app.post('/a/b', callbacks)],
    ['app.all', (app, callbacks) => app.all('/a/b', callbacks)],
    ['app.route', (app, callbacks) => app.route('/a/b').post(callbacks)],
    ['app.post with a list', (app, callbacks) => app.post('/a/b', [framework.json(), callbacks])],
    ['a pattern', (app, callbacks) => app.post(/^\/a\/./, callbacks)],
    ['a parameter', (app, callbacks) => app.post('/:tenant/b', callbacks)],
    ['a mounted router', (app, callbacks) => app.use('/a', framework.Router().post('/b', callbacks))],
    ['a sub-app', (app, callbacks) => app.use('/a', framework().post('/b', callbacks))],
    ['app.post behind a parser', (app, callbacks) => app.use(framework.json()).post('/a/b', callbacks)],
    ['app.post behind other routes', (app, callbacks) => app.all(/./, passOn).post('/a/b', callbacks)],
  ];
  const passOn: RequestHandler = (_request, _response, next) => {
    next();
  };

  test.each(routes)('a callback that comes by the route of %s is handled once', async (_declared, declare) => {
    const { options, handled } = recordingOptions();
    const app = framework();
    declare(app, router(options));
    const url = await serveApp(app);
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
    const url = await serveApp(app);
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
    const { options } = recordingOptions();
    const verify = ({ params }: { params: Record<string, unknown> }): boolean => params.tenant === 'acme';
    const app = framework();
    app.post('/:tenant/callbacks', router({ ...options, verify }));
    const url = await serveApp(app);
    expect((await post(`${url}/acme/callbacks`, transferSucceeded())).status).toBe(200);
    expect((await post(`${url}/other/callbacks`, transferSucceeded())).status).toBe(401);
  });

  test('app.post leaves other methods to the app, and app.all responds to them with 405', async () => {
    const { options, logged } = recordingOptions();
    const callbacks = router(options);
    const app = framework();
    app.post('/posted', callbacks);
    app.all('/all', callbacks);
    app.get('/posted', page('a ping'));
    const url = await serveApp(app);
    expect((await post(`${url}/posted`, '', { method: 'GET' })).body).toBe('a ping');
    expect((await post(`${url}/posted`, {}, { method: 'PUT' })).status).toBe(404);
    expect(logged).toEqual([]);
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const response = await post(`${url}/all`, {}, { method });
      expect([response.status, response.headers.allow]).toEqual([405, 'POST']);
      expect(response.body).toBe(errorBody(405, 'A callback is a POST.'));
    }
  });

  test('a router under app.use leaves other pages to the app, also after a route that has called next', async () => {
    const { options, handled } = recordingOptions();
    const app = framework().all(/./, passOn);
    app.use('/callbacks', router(options));
    app.use('/guarded', router({ ...options, verify: urlToken(secret) }));
    app.use(router(options));
    app.use((_request, response) => {
      response.send('a page of the app');
    });
    const url = await serveApp(app);
    for (const path of ['callbacks/health', 'guarded/a/b', 'login']) {
      expect((await post(`${url}/${path}`, transferSucceeded())).body).toBe('a page of the app');
    }
    expect(handled).toEqual([]);
    for (const path of ['callbacks', `guarded/${secret}`, '']) {
      expect((await post(`${url}/${path}`, transferSucceeded())).status).toBe(200);
    }
    expect(handled).toHaveLength(3);
  });

  /** A success as a form has it: nested names, and every value a text. */
  const form =
    'event=transfer.success&data[id]=1&data[externalId]=2&data[status]=SUCCESS&data[amount]=3&data[currency]=XAF';
  const xml: RequestHandler = async (request, _response, next) => {
    await request.toArray();
    request.body = transferSucceeded();
    next();
  };
  const otherwise: [string, (app: Express, callbacks: Router) => unknown, string, Sent][] = [
    [
      'JSON of another type',
      (app, callbacks) => app.post('/a', framework.json({ type: () => true }), callbacks),
      JSON.stringify(transferSucceeded()),
      { headers: { 'Content-Type': 'application/vnd.api+json' } },
    ],
    [
      'JSON without a type',
      (app, callbacks) => app.post('/a', framework.json({ type: () => true }), callbacks),
      JSON.stringify(transferSucceeded()),
      { headers: { 'Content-Type': undefined } },
    ],
    [
      'a form',
      (app, callbacks) => app.post('/a', framework.urlencoded({ extended: true }), callbacks),
      form,
      { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
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
      const { options } = recordingOptions();
      const fields = { id: z.string(), externalId: z.string(), amount: z.coerce.number(), currency: z.string() };
      const schema = z.looseObject({
        event: z.literal('transfer.success'),
        data: z.looseObject({ ...fields, status: z.literal('SUCCESS') }),
      });
      const app = framework();
      declare(app, router({ ...options, schema, onSuccess: () => undefined, onFailed: () => undefined }));
      expect((await post(`${await serveApp(app)}/a`, body, sent)).body).toBe('{"outcome":"processed"}');
    },
  );

  /** How tracers wrap the handlers of a route: what each leaves of the handler on its wrapper. */
  const wrappers: [string, (wrapper: RequestHandler, handler: RequestHandler) => unknown][] = [
    ['their names', (wrapper, { name }) => Object.defineProperty(wrapper, 'name', { value: name })],
    ['their properties', (wrapper, handler) => Object.assign(wrapper, handler)],
  ];
  test.each(wrappers)('a tracer may wrap the handlers of a route and keep only %s', async (_kept, copy) => {
    const { options, handled } = recordingOptions();
    const callbacks = router(options);
    const wrapper: RequestHandler = (...args) => {
      callbacks(...args);
    };
    copy(wrapper, callbacks);
    const url = await serveApp(framework().post('/a/b', wrapper));
    expect((await post(`${url}/a/b`, transferSucceeded())).status).toBe(200);
    expect(handled).toHaveLength(1);
  });
});
