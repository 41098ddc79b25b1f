import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import express from 'express';
import { vi } from 'vitest';
import {
  transferCallbackHandler,
  transferCallbackListener,
  transferCallbackRouter,
  type TransferCallbackOptions,
} from 'transfer-callbacks';
import { serve, type Served, serveWeb } from './serve.js';

/** A middleware as Express 4, Express 5 and Connect take it. */
export type Middleware = (
  request: IncomingMessage,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => unknown;

export interface Surroundings {
  /** Middlewares in front of the package. */
  readonly before?: readonly Middleware[];
  /** Settings of the Express app; a plain server has none. */
  readonly settings?: Readonly<Record<string, unknown>>;
}

export interface Started extends Served {
  /** What reached the app's error handler, which responds with 200 to everything. */
  readonly passedOn: readonly unknown[];
}

/** A kind of server that an app may use. `start` serves the package on it at `mountPath`. */
export interface HttpServer {
  readonly name: string;
  readonly start: (options: TransferCallbackOptions) => Promise<Started>;
}

/** A server whose requests are those of `node:http`, which other middleware may have treated before. */
export interface NodeServer extends HttpServer {
  readonly start: (options: TransferCallbackOptions, surroundings?: Surroundings) => Promise<Started>;
  /** The parsers that come with this version of Express; a plain server borrows those of Express 5. */
  readonly parsers: Pick<typeof express, 'json' | 'raw' | 'text' | 'urlencoded'>;
}

export const mountPath = '/callbacks/transfers';
/** The body of the app's own 404, for requests that the package leaves to it. */
export const notFoundBody = 'the app has no such page';

const express4 = createRequire(import.meta.url)('express4') as typeof express;

/** Loads the router as a project with Express 4 does: it is made with the `Router` of that version. */
async function routerOfExpress4(): Promise<typeof transferCallbackRouter> {
  vi.resetModules();
  vi.doMock('express', () => ({ ...express4, default: express4 }));
  try {
    return (await import('transfer-callbacks')).transferCallbackRouter;
  } finally {
    vi.doUnmock('express');
  }
}

/** A version of Express, with the router as that version loads it. */
export interface ExpressServer extends NodeServer {
  readonly framework: typeof express;
  readonly router: typeof transferCallbackRouter;
}

function expressServer(name: string, framework: typeof express, router: typeof transferCallbackRouter): ExpressServer {
  return {
    name,
    framework,
    router,
    parsers: framework,
    async start(options, { before = [], settings = {} } = {}) {
      const passedOn: unknown[] = [];
      const app = framework();
      for (const [setting, value] of Object.entries(settings)) app.set(setting, value);
      for (const middleware of before) app.use(middleware);
      app.use(mountPath, router(options));
      app.use((_request, response) => {
        response.status(404).send(notFoundBody);
      });
      // eslint-disable-next-line @typescript-eslint/no-unused-vars -- Express knows an error handler by its four parameters.
      app.use((error: unknown, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
        passedOn.push(error);
        response.status(200).send('all is well');
      });
      const { url, close } = await serve(app);
      return { url: url + mountPath, close, passedOn };
    },
  };
}

export const plainServer: NodeServer = {
  name: 'a plain server',
  parsers: express,
  async start(options, { before = [] } = {}) {
    const passedOn: unknown[] = [];
    const listen = transferCallbackListener(options);
    const { url, close } = await serve((request, response) => {
      const runFrom = (index: number): void => {
        const middleware = before[index];
        if (middleware === undefined) {
          listen(request, response);
          return;
        }
        middleware(request, response, (error) => {
          if (error === undefined) runFrom(index + 1);
          else passedOn.push(error);
        });
      };
      runFrom(0);
    });
    return { url: url + mountPath, close, passedOn };
  },
};

export const expressServers: readonly ExpressServer[] = [
  expressServer('Express 5', express, transferCallbackRouter),
  expressServer('Express 4', express4, await routerOfExpress4()),
];

/** A host that gives web requests. Its app acknowledges whatever the handler throws, like that of Express. */
export const webServer: HttpServer = {
  name: 'a host of web requests',
  async start(options) {
    const passedOn: unknown[] = [];
    // The tests' own verifiers read what is the same in every request.
    const handle = transferCallbackHandler(options as never);
    const { url, close } = await serveWeb((request) =>
      handle(request).catch((error: unknown) => {
        passedOn.push(error);
        return new Response('all is well');
      }),
    );
    return { url: url + mountPath, close, passedOn };
  },
};

/** All that are built on `node:http`, for `describe.each`. */
export const nodeServers: readonly NodeServer[] = [...expressServers, plainServer];

/** The two roads of a request: Node's stream, and a web request. Express adds nothing to what a verifier reads. */
export const roads: readonly HttpServer[] = [plainServer, webServer];

/** All, for `describe.each`. */
export const httpServers: readonly HttpServer[] = [...nodeServers, webServer];
