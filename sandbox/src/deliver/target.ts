import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import { createServer as createNetServer, Server as NetServer, type AddressInfo, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { invalidArgument } from '../../../src/lib/checks.js';
import { baseUrlAt } from '../attempt/address.js';

/** What `deliver` accepts as its target: an app or another request listener, a server, or a URL. */
export type DeliverTarget = RequestListener | Server | HttpsServer | string | URL;

/** A target that can be reached now. */
interface OpenTarget {
  readonly baseUrl: string;
  /** `deliver` was given the server itself, so no certificate needs to prove which server it is. */
  readonly anyCertificate: boolean;
  close(): Promise<void>;
}

const expected = 'an app, a request listener, an http or https server (of Fastify: `app.server`), or a URL';

/** Makes the target reachable until it is closed. Throws INVALID_ARGUMENT. */
export async function openTarget(target: unknown): Promise<OpenTarget> {
  if (typeof target === 'string' || target instanceof URL) return openUrl(String(target));
  if (typeof target === 'function') return openServer(createServer(target as RequestListener));
  if (target instanceof NetServer) return openServer(target);
  throw invalidArgument('target', expected, target);
}

function openUrl(url: string): OpenTarget {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw invalidArgument('target', expected, url);
  return { baseUrl: url, anyCertificate: false, close: () => Promise.resolve() };
}

async function openServer(server: NetServer): Promise<OpenTarget> {
  const scheme = server instanceof TlsServer ? 'https' : 'http';
  const at = server.address();
  if (at !== null && typeof at === 'object') {
    return { baseUrl: baseUrlAt(at.address, at.port, scheme), anyCertificate: true, close: () => Promise.resolve() };
  }
  return openEntrance(server, scheme);
}

/**
 * Passes connections on to a server that does not listen. The server itself must not be made to listen: two concurrent
 * deliveries would disagree about when to close it, and a test may still call its `listen`.
 */
async function openEntrance(server: NetServer, scheme: 'http' | 'https'): Promise<OpenTarget> {
  const sockets: Socket[] = [];
  const entrance = createNetServer((socket) => {
    sockets.push(socket);
    server.emit('connection', socket);
  });
  await once(entrance.listen(0, '127.0.0.1'), 'listening');
  const { address, port } = entrance.address() as AddressInfo;
  return {
    baseUrl: baseUrlAt(address, port, scheme),
    anyCertificate: true,
    async close() {
      const closed = once(entrance, 'close');
      entrance.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
