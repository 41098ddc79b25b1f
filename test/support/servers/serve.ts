import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WebRequest } from '../../../src/http/handler.js';

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

/** Serves a handler for web requests on a free port of the loopback, as a host of the Fetch API does. */
export function serveWeb(handle: (request: WebRequest) => Promise<Response>): Promise<Served> {
  return serve((incoming, outgoing) => {
    void handle(toWebRequest(incoming)).then((response) => send(response, outgoing));
  });
}

function toWebRequest(incoming: IncomingMessage): WebRequest {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headersDistinct)) {
    for (const each of value ?? []) headers.append(name, each);
  }
  const { method = 'GET', url = '/' } = incoming;
  const body = method === 'GET' || method === 'HEAD' ? null : toWebStream(incoming);
  const init: RequestInit & { duplex: 'half' } = { method, headers, body, duplex: 'half' };
  const request = new Request(new URL(url, `http://${incoming.headers.host ?? 'localhost'}`), init);
  return Object.assign(request, { ip: incoming.socket.remoteAddress });
}

/** Cancelling it drops the rest of the body: `Readable.toWeb` would end the connection, and the response with it. */
function toWebStream(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  let isWanted = true;
  return new ReadableStream(
    {
      start(controller) {
        incoming.on('data', (chunk: Buffer) => {
          if (!isWanted) return;
          incoming.pause();
          controller.enqueue(new Uint8Array(chunk));
        });
        incoming.once('end', () => {
          if (isWanted) controller.close();
          isWanted = false;
        });
        incoming.once('close', () => {
          if (isWanted) controller.error(new Error('The client has disconnected.'));
          isWanted = false;
        });
        incoming.on('error', () => undefined);
        incoming.pause();
      },
      pull() {
        incoming.resume();
      },
      cancel() {
        isWanted = false;
        incoming.resume();
      },
    },
    { highWaterMark: 0 },
  );
}

async function send(response: Response, outgoing: ServerResponse): Promise<void> {
  const body = Buffer.from(await response.arrayBuffer());
  outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(body);
}
