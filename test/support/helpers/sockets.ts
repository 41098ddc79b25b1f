import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { patienceMs } from './patience.js';

/** The head of a request, with `Host`, `Connection: close` and these headers only. */
export function head(url: string, headers: Record<string, string | number>, method = 'POST'): string {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ Host: host, Connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return [`${method} ${pathname}${search} HTTP/1.1`, ...lines, '', ''].join('\r\n');
}

/** One chunk of a chunked body. The empty chunk ends the body. */
export function chunk(bytes: Uint8Array | string): Buffer {
  const content = Buffer.from(bytes as string);
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')]);
}

/**
 * Connects, lets `send` write a request, and resolves with everything that the server sent until it closed the
 * connection: as text, empty when it sent nothing.
 */
export async function overSocket(url: string, send: (socket: Socket) => unknown): Promise<string> {
  const { port } = new URL(url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', noDelay: true });
  const received: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => received.push(bytes));
  socket.setTimeout(patienceMs, () => socket.destroy());
  // A server may reset the connection. Then `close` follows, with what was received before.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  await send(socket);
  await closed;
  return Buffer.concat(received).toString();
}

/** Parses the status out of a response that came over a socket. 0 if there was no response. */
export function parseStatus(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0);
}
