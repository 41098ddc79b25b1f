import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { chunk, head, overSocket, parseStatus } from '../support/sockets.js';
import { witness } from '../support/witness.js';
import { json, start } from './support.js';

describe.each(httpServers)('on $name', (server) => {
  describe('the limit', () => {
    /** A valid callback of exactly this many bytes, most of them in characters of four. */
    function callbackOf(length: number): string {
      const bare = JSON.stringify(transferSucceeded({ reference: '' }));
      const filling = length - Buffer.byteLength(bare);
      const reference = '😀'.repeat(Math.floor(filling / 4)) + 'x'.repeat(filling % 4);
      return bare.replace('"reference":""', `"reference":"${reference}"`);
    }

    async function sendChunked(url: string, bytes: string): Promise<string> {
      return overSocket(url, (socket) => {
        socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }));
        const whole = Buffer.from(bytes);
        for (let at = 0; at < whole.length; at += 997) socket.write(chunk(whole.subarray(at, at + 997)));
        socket.write(chunk(''));
      });
    }

    test.each([
      ['by default', undefined, 102_400],
      ['as set', 1_000, 1_000],
    ])('the limit %s accepts exactly as many bytes, and not one more', async (_what, bodyLimitBytes, limit) => {
      const { options, handled, logged } = witness();
      const { url } = await start(server, { ...options, bodyLimitBytes });
      expect((await post(url, callbackOf(limit))).status).toBe(200);
      expect(parseStatus(await sendChunked(url, callbackOf(limit)))).toBe(200);
      expect(handled).toHaveLength(2);
      expect(logged).toEqual([]);

      const tooLarge = errorBody(413, `The body must not be longer than ${limit} bytes.`);
      const answer = await post(url, callbackOf(limit + 1));
      expect([answer.status, answer.body]).toEqual([413, tooLarge]);
      const chunked = await sendChunked(url, callbackOf(limit + 1));
      expect(parseStatus(chunked)).toBe(413);
      expect(chunked.endsWith(tooLarge)).toBe(true);
      expect(handled).toHaveLength(2);
    });

    test('a body that is too long by its Content-Length is refused before a byte has come', async () => {
      const { options } = witness();
      const { url } = await start(server, options);
      const answer = await overSocket(url, (socket) => socket.write(head(url, { ...json, 'Content-Length': 102_401 })));
      expect(parseStatus(answer)).toBe(413);
    });

    test('an endless body is refused at the limit', async () => {
      const { options } = witness();
      const { url } = await start(server, options);
      const answer = await overSocket(url, (socket) => {
        socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }));
        const filling = chunk(Buffer.alloc(16_384, '['));
        for (let sent = 0; sent < 7; sent += 1) socket.write(filling);
      });
      expect(parseStatus(answer)).toBe(413);
    });

    test('the limit does not apply to a body that a parser has read', async () => {
      const { options } = witness();
      const { url } = await start(server, { ...options, bodyLimitBytes: 10 }, { before: [server.parsers.json()] });
      expect((await post(url, callbackOf(1_000))).status).toBe(200);
    });
  });
});
