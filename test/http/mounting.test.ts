import { describe, expect, onTestFinished, test } from 'vitest';
import type { Express, RequestHandler } from 'express';
import { urlToken } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expressServers } from '../support/http-servers.js';
import { post } from '../support/post.js';
import { serve } from '../support/serve.js';
import { witness } from '../support/witness.js';

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

  test('a router at the root takes the root only', async () => {
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

  test('two routers, one below the mount path of the other, each receive their own callbacks', async () => {
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
