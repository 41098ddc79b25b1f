import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { urlToken, type TransferCallbackOptions } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers, nodeServers, type NodeServer } from '../support/servers/http-servers.js';
import { errorBody, post } from '../support/helpers/post.js';
import { chunk, head, overSocket, parseStatus } from '../support/helpers/sockets.js';
import { doing, json, sendInChunks, startRecording } from './support.js';

/** A valid callback of exactly this many bytes, most of them in characters of four. */
function callbackOf(length: number): string {
  const bare = JSON.stringify(transferSucceeded({ reference: '' }));
  const filling = length - Buffer.byteLength(bare);
  const reference = '😀'.repeat(Math.floor(filling / 4)) + 'x'.repeat(filling % 4);
  return bare.replace('"reference":""', `"reference":"${reference}"`);
}

describe.each(httpServers)('on $name', (server) => {
  test.each([
    ['by default', undefined, 102_400],
    ['as set', 1_000, 1_000],
  ])('the limit %s accepts exactly as many bytes, and not one more', async (_what, bodyLimitBytes, limit) => {
    const { url, handled, logged } = await startRecording(server, { bodyLimitBytes });
    expect((await post(url, callbackOf(limit))).status).toBe(200);
    expect(parseStatus(await sendInChunks(url, callbackOf(limit), 997))).toBe(200);
    expect(handled).toHaveLength(2);
    expect(logged).toEqual([]);

    const tooLarge = errorBody(413, `The body must not be longer than ${limit} bytes.`);
    const response = await post(url, callbackOf(limit + 1));
    expect([response.status, response.body]).toEqual([413, tooLarge]);
    const chunked = await sendInChunks(url, callbackOf(limit + 1), 997);
    expect(parseStatus(chunked)).toBe(413);
    expect(chunked.endsWith(tooLarge)).toBe(true);
    expect(handled).toHaveLength(2);
  });

  test('a body that is too long by its Content-Length is refused before a byte has come', async () => {
    const { url } = await startRecording(server);
    const response = await overSocket(url, async (socket) => {
      socket.write(head(url, { ...json, 'Content-Length': 102_401 }));
      await once(socket, 'data');
      socket.destroy();
    });
    expect(parseStatus(response)).toBe(413);
  });
});

const limit = 50_000;
const filling = chunk(Buffer.alloc(25_000, '['));

/**
 * Sends a request without an end until the server ends the connection. Resolves with what came back, and with how many
 * bytes the server has read.
 */
async function sendWithoutEnd(
  server: NodeServer,
  given: Partial<TransferCallbackOptions>,
  method = 'POST',
  type = 'application/json',
) {
  let accepted: Socket | undefined;
  const before = doing((request) => (accepted = request.socket));
  const { url } = await startRecording(server, { bodyLimitBytes: limit, ...given }, { before: [before] });
  const headers = { 'Content-Type': type, 'Transfer-Encoding': 'chunked', Connection: 'keep-alive' };
  const text = await overSocket(url, (socket) => {
    onTestFinished(() => void socket.destroy());
    socket.write(head(url, headers, method));
    const write = (): void => {
      // Stops while the server does not read, and never for the response.
      while (!socket.destroyed && socket.write(filling));
    };
    socket.on('drain', write);
    write();
  });
  return { text, bytesRead: accepted?.bytesRead ?? 0 };
}

describe.each(nodeServers)('on $name', (server) => {
  const verify = urlToken('a-secret-long-enough');
  test.each([
    ['longer than the limit', 413, {}, 'POST', 'application/json'],
    ['of a refused sender', 401, { verify }, 'POST', 'application/json'],
    ['of another type', 415, {}, 'POST', 'text/plain'],
    ['of another method', 405, {}, 'PUT', 'application/json'],
  ])('an endless body %s gets %i and is cut', async (_what, status, given, method, type) => {
    const { text, bytesRead } = await sendWithoutEnd(server, given, method, type);
    expect(parseStatus(text)).toBe(status);
    // A sender that reads on its way gets a response that stops it.
    expect(/\r\nConnection: close\r\n/i.test(text)).toBe(status === 413);
    // Ten limits are dropped after the response, so that the sender reads it. One read of the socket may bring 64 KiB.
    expect(bytesRead).toBeGreaterThan(10 * limit);
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
    // The read of the socket that reaches the limit, and what Node 26 keeps in a request that is paused. Each read
    // brings 64 KiB.
    expect(bytesRead).toBeLessThanOrEqual(3 * 65_536);
  });

  test('the limit does not apply to a body that a parser has read', async () => {
    const { url } = await startRecording(server, { bodyLimitBytes: 10 }, { before: [server.parsers.json()] });
    expect((await post(url, callbackOf(1_000))).status).toBe(200);
  });
});
