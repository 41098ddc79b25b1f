import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers, type Middleware } from '../support/http-servers.js';
import { errorBody, post } from '../support/post.js';
import { witness } from '../support/witness.js';
import { manyScripts, start } from './support.js';

interface Body {
  body?: unknown;
}

describe.each(httpServers)('on $name', (server) => {
  describe('a stream that was read before and not left in request.body', () => {
    const cause =
      'Another middleware has read the body and left it neither in request.body nor in request.rawBody: ' +
      'mount the router before that middleware.';
    type Raw = IncomingMessage & Body & { rawBody?: unknown };
    const leaving =
      (rawBodyOf: (bytes: Buffer) => unknown, body?: unknown): Middleware =>
      async (request: Raw, _response, next) => {
        request.rawBody = rawBodyOf(Buffer.concat((await request.toArray()) as Buffer[]));
        if (body !== undefined) request.body = body;
        next();
      };
    const readers: [string, Middleware][] = [
      [
        'by listening',
        async (request, _response, next) => {
          await once(request.resume(), 'end');
          next();
        },
      ],
      [
        'by iterating',
        async (request, _response, next) => {
          await request.toArray();
          next();
        },
      ],
      [
        'by its first piece only',
        async (request, _response, next) => {
          await once(request, 'data');
          request.pause();
          next();
        },
      ],
      ['into a rawBody that is a list', leaving((bytes) => [bytes], null)],
      ['into a rawBody that is an object', leaving(() => ({}))],
      ['into a rawBody that is empty', leaving(() => null)],
    ];
    test.each(readers)(
      'a body that was read %s is a fault of the app: 500, and the log names the cause',
      async (_how, reader) => {
        const { options, handled, logged } = witness();
        const { url, passedOn } = await start(server, options, { before: [reader] });
        const answer = await post(url, transferSucceeded());
        expect([answer.status, answer.body]).toEqual([500, errorBody(500, 'The callback could not be read.')]);
        expect(handled).toEqual([]);
        expect(passedOn).toEqual([]);
        expect(logged).toMatchObject([
          {
            details: {
              outcome: 'invalid',
              issues: [{ path: [], message: cause }],
              err: { code: 'BODY_CONSUMED', message: cause },
            },
          },
        ]);
      },
    );

    test.each([
      ['bytes', leaving((bytes) => bytes)],
      ['bytes of no Buffer', leaving((bytes) => new Uint8Array(bytes))],
      ['text', leaving((bytes) => bytes.toString())],
      ['bytes, beside the empty body of a parser that has parsed nothing', leaving((bytes) => bytes, {})],
    ])('a body that was left in request.rawBody as %s is read there', async (_what, reader) => {
      const { options, handled } = witness();
      const { url } = await start(server, options, { before: [reader] });
      const callback = manyScripts();
      expect((await post(url, callback)).status).toBe(200);
      expect(handled).toEqual([callback]);
      expect((await post(url, '{')).body).toBe(errorBody(400, 'The body is not JSON.'));
      expect((await post(url, Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(400);
    });

    test('a request.body that was parsed comes before request.rawBody', async () => {
      const { options, handled } = witness();
      const callback = transferSucceeded();
      const { url } = await start(server, options, { before: [leaving(() => 'not JSON', callback)] });
      expect((await post(url, {})).status).toBe(200);
      expect(handled).toEqual([callback]);
    });
  });
});
