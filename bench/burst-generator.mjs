// A burst: as many connections as callbacks. All of them are open before the first callback is sent.
import { once } from 'node:events';
import { connect } from 'node:net';
import { callbackText, path } from './callback.mjs';

/** How many connections are opened at the same time: the server's queue of new ones holds 511. */
const openedTogether = 200;

async function openAll(port, count) {
  const sockets = [];
  while (sockets.length < count) {
    const next = Array.from({ length: Math.min(openedTogether, count - sockets.length) }, async () => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true });
      await once(socket, 'connect');
      return socket;
    });
    sockets.push(...(await Promise.all(next)));
  }
  return sockets;
}

/** Sends one callback and reads until the server closes the connection. */
async function send(socket, id) {
  const body = callbackText(id);
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => (text += chunk));
  socket.on('error', () => undefined);
  const closed = once(socket, 'close').catch(() => undefined);
  socket.write([...head, '', body].join('\r\n'));
  await closed;
  return {
    id,
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
    outcome: /"outcome":"(\w+)"/.exec(text)?.[1],
  };
}

process.on('message', async ({ port, count, ids = Array.from({ length: count }, () => crypto.randomUUID()) }) => {
  const sockets = await openAll(port, ids.length);
  const startedAt = performance.now();
  const results = await Promise.all(ids.map((id, i) => send(sockets[i], id)));
  process.send({ results, tookMs: performance.now() - startedAt });
});
process.send('ready');
