import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import express from 'express';
import untyped4 from 'express4';
import { vi } from 'vitest';
import {
  memoryStore,
  transferCallbackListener,
  transferCallbackRouter,
  type TransferCallback,
  type TransferCallbackOptions,
} from 'transfer-callbacks';

export interface Served {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Serves a listener or an Express app on a free port of the loopback. */
export async function serve(listenerOrApp: RequestListener): Promise<Served> {
  const server = createServer(listenerOrApp).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** How long a silent server is waited for: long enough for a busy machine, short enough to fail a test that hangs. */
const patienceMs = 10_000;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Record<string, string | readonly string[] | undefined>;
}

/** Sends one request as JSON, unless `headers` says otherwise; a header set to `undefined` is left out. */
export async function post(url: string, body: unknown, { method = 'POST', headers = {} }: Sent = {}): Promise<Answer> {
  const bytes = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  const request = httpRequest(url, { method, agent: false });
  const all: Sent['headers'] = {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(bytes)),
    ...headers,
  };
  for (const [name, value] of Object.entries(all)) {
    if (value !== undefined) request.setHeader(name, value);
  }
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve).once('error', reject);
  });
  request.setTimeout(patienceMs, () => request.destroy(new Error(`No answer within ${patienceMs} ms.`)));
  request.end(bytes);
  const response = await answered;
  const received = (await response.setEncoding('utf8').toArray()) as string[];
  return { status: response.statusCode ?? 0, headers: response.headers, body: received.join('') };
}

/** The service's error shape, as the bytes that are expected on the wire. */
export function errorBody(statusCode: number, message: string): string {
  return JSON.stringify({ error: true, statusCode, message, data: null });
}

/** The first lines of a request up to the blank one, with exactly these headers and `Host`. */
export function head(url: string, headers: Record<string, string | number>, method = 'POST'): string {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ Host: host, Connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return [`${method} ${pathname}${search} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

/** One chunk of a chunked transfer. The empty one ends it. */
export function chunk(bytes: Uint8Array | string): Buffer {
  const content = Buffer.from(bytes as string);
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')]);
}

/**
 * Writes a request byte by byte as `send` likes, and gathers whatever comes back until the server closes the
 * connection: the bytes as text, empty when there was no answer.
 */
export async function overSocket(url: string, send: (socket: Socket) => unknown): Promise<string> {
  const { port } = new URL(url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true });
  const received: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => received.push(bytes));
  socket.setTimeout(patienceMs, () => socket.destroy());
  // A server that resets the connection has given its answer: none.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  await send(socket);
  await closed;
  return Buffer.concat(received).toString();
}

/** The status of an answer that came over a socket; 0 for none. */
export function statusOf(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0);
}

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
  /** What reached the app's error handler, which answers 200 to everything. */
  readonly passedOn: readonly unknown[];
}

/** One way to put the package on the wire, at `mountPath`. */
export interface Edge {
  readonly name: string;
  start(options: Options, surroundings?: Surroundings): Promise<Started>;
  /** The parsers that come with this version of Express; a plain server borrows those of Express 5. */
  readonly parsers: Pick<typeof express, 'json' | 'raw' | 'text' | 'urlencoded'>;
}

export interface Line {
  readonly level: 'warn' | 'error';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Options on a memory store of their own, whose handlers and logger write down what they get. */
export function witness() {
  const handled: TransferCallback[] = [];
  const logged: Line[] = [];
  const note = (callback: TransferCallback): void => {
    handled.push(callback);
  };
  const line = (level: Line['level']) => (details: object, message: string) => {
    logged.push({ level, message, details: { ...details } });
  };
  const logger = { warn: line('warn'), error: line('error') };
  return { handled, logged, options: { store: memoryStore(), onSuccess: note, onFailed: note, logger } };
}

type Options = TransferCallbackOptions;

export const mountPath = '/callbacks/transfers';
/** What the app itself answers to a request that the package has left to it, with a 404. */
export const notFoundBody = 'the app has no such page';

const express4 = untyped4 as unknown as typeof express;

/** The router as it is in a project that has Express 4: made with the `Router` of that version. */
async function routerOfExpress4(): Promise<typeof transferCallbackRouter> {
  vi.resetModules();
  vi.doMock('express', () => import('express4'));
  try {
    return (await import('transfer-callbacks')).transferCallbackRouter;
  } finally {
    vi.doUnmock('express');
  }
}

/** One way that is a version of Express, with the router as that version loads it. */
export interface ExpressEdge extends Edge {
  readonly framework: typeof express;
  readonly router: typeof transferCallbackRouter;
}

function expressEdge(name: string, framework: typeof express, router: typeof transferCallbackRouter): ExpressEdge {
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

export const plainEdge: Edge = {
  name: 'a plain server',
  parsers: express,
  async start(options, { before = [] } = {}) {
    const passedOn: unknown[] = [];
    const listen = transferCallbackListener(options);
    const { url, close } = await serve((request, response) => {
      const goOn = (index: number): void => {
        const middleware = before[index];
        if (middleware === undefined) {
          listen(request, response);
          return;
        }
        middleware(request, response, (error) => {
          if (error === undefined) goOn(index + 1);
          else passedOn.push(error);
        });
      };
      goOn(0);
    });
    return { url: url + mountPath, close, passedOn };
  },
};

export const expressEdges: readonly ExpressEdge[] = [
  expressEdge('Express 5', express, transferCallbackRouter),
  expressEdge('Express 4', express4, await routerOfExpress4()),
];

/** Every way, for `describe.each`. */
export const edges: readonly Edge[] = [...expressEdges, plainEdge];
