import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { urlToken, type TransferCallbackOptions } from 'transfer-callbacks';
import { httpServers, type HttpServer } from '../support/http-servers.js';
import { chunk, head, parseStatus } from '../support/sockets.js';
import { witness } from '../support/witness.js';

const limit = 10_000;
const filling = chunk(Buffer.alloc(5_000, '['));

/**
 * Sends a request without an end until the server ends the connection. Resolves with what came back, and with how many
 * bytes the server has read.
 */
async function sendWithoutEnd(
  server: HttpServer,
  given: Partial<TransferCallbackOptions>,
  method = 'POST',
  type = 'application/json',
) {
  let accepted: Socket | undefined;
  const { options } = witness();
  const { url, close } = await server.start(
    { ...options, bodyLimitBytes: limit, ...given },
    {
      before: [
        (request, _response, next) => {
          accepted = request.socket;
          next();
        },
      ],
    },
  );
  onTestFinished(close);
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
  onTestFinished(() => {
    socket.destroy();
  });
  const received: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => received.push(bytes));
  // The server may reset the connection of a sender that goes on writing.
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await once(socket, 'connect');
  socket.write(head(url, { 'Content-Type': type, 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' }, method));
  const write = (): void => {
    // Stops while the server does not read, and never for the response.
    while (!socket.destroyed && socket.write(filling));
  };
  socket.on('drain', write);
  write();
  await closed;
  return { text: Buffer.concat(received).toString(), bytesRead: accepted?.bytesRead ?? 0 };
}

describe.each(httpServers)('on $name', (server) => {
  const verify = urlToken('a-secret-long-enough');
  test.each([
    ['longer than the limit', 413, {}, 'POST', 'application/json'],
    ['of a refused sender', 401, { verify }, 'POST', 'application/json'],
    ['of another type', 415, {}, 'POST', 'text/plain'],
    ['of another method', 405, {}, 'PUT', 'application/json'],
  ])('an endless body %s gets %i and is cut', async (_what, status, given, method, type) => {
    const { text, bytesRead } = await sendWithoutEnd(server, given, method, type);
    expect(parseStatus(text)).toBe(status);
    // A sender that reads on its way is told to stop.
    expect(/\r\nConnection: close\r\n/i.test(text)).toBe(status === 413);
    // The limit, ten times as much after the response, and what one read of the socket may bring (64 KiB).
    expect(bytesRead).toBeLessThan(11 * limit + 2 * 65_536);
  });

  test('a late refusal of an endless body reads no more than any other refusal', async () => {
    let bytesRead = 0;
    const late = async (request: { socket: Socket }): Promise<boolean> => {
      // Long enough for a sender on the loopback to fill any buffer.
      await new Promise((resolve) => setTimeout(resolve, 50));
      ({ bytesRead } = request.socket);
      return false;
    };
    const { text } = await sendWithoutEnd(server, { verify: late });
    expect(parseStatus(text)).toBe(401);
    expect(bytesRead).toBeLessThan(limit + 2 * 65_536);
  });
});
