import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { readBody } from '../../src/http/body.js';
import { containing } from '../support/helpers/containing.js';
import { nodeServers, type Middleware } from '../support/servers/http-servers.js';
import { errorBody, post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { chunk, head, overSocket } from '../support/helpers/sockets.js';
import { later } from '../core/support.js';
import { json, manyScripts, start, startRecording } from './support.js';

type Raw = IncomingMessage & { body?: unknown; rawBody?: unknown };

/** Reads the whole body, and leaves it in `rawBody` as `rawBodyOf` makes it. */
function leaving(rawBodyOf: (bytes: Buffer) => unknown, body?: unknown): Middleware {
  return async (request: Raw, _response, next) => {
    request.rawBody = rawBodyOf(Buffer.concat((await request.toArray()) as Buffer[]));
    if (body !== undefined) request.body = body;
    next();
  };
}

const cause =
  'Another middleware, or a hook that listens to `data`, has read the body and left it neither in request.body nor in ' +
  'request.rawBody: mount the router before that middleware, or remove the hook.';
const readers: [string, Middleware][] = [
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
  [
    'by a hook that listens to `data`',
    async (request, _response, next) => {
      request.on('data', () => undefined);
      await once(request, 'end');
      next();
    },
  ],
  ['into a rawBody that is a list', leaving((bytes) => [bytes], null)],
];

const throws = (): never => {
  throw new Error('a trap');
};
const traps: [string, (request: Raw) => unknown][] = [
  ['a getter', (request) => Object.defineProperty(request, 'body', { get: throws })],
  ['a proxy without properties', (request) => (request.body = new Proxy({ event: '' }, { get: throws }))],
];

const moments: [string, (closed: Promise<unknown>) => Promise<unknown>][] = [
  ['while it is read', () => Promise.resolve()],
  ['before the package sees it', (closed) => closed],
];

describe.each(nodeServers)('on $name', (server) => {
  test.each(readers)(
    'a body that was read %s is a fault of the app: 500, and the log names the cause',
    async (_how, reader) => {
      const { url, passedOn, handled, logged } = await startRecording(server, {}, { before: [reader] });
      const response = await post(url, transferSucceeded());
      expect([response.status, response.body]).toEqual([500, errorBody(500, 'The callback could not be read.')]);
      expect(handled).toEqual([]);
      expect(passedOn).toEqual([]);
      expect(logged).toMatchObject([
        {
          details: {
            outcome: 'invalid',
            issues: [{ path: [], message: cause }],
            err: { code: 'BODY_CONSUMED', message: containing(cause) },
          },
        },
      ]);
    },
  );

  test.each(traps)('a body that throws because it is %s is a fault of the app: 500', async (_what, trap) => {
    const { options, handled, logged } = recordingOptions();
    const before: Middleware = (request, _response, next) => {
      trap(request);
      next();
    };
    const outcomes: unknown[] = [];
    const onOutcome = (outcome: unknown): unknown => outcomes.push(outcome);
    const { url, passedOn } = await start(server, { ...options, onOutcome }, { before: [before] });
    const response = await post(url, transferSucceeded());
    expect([response.status, response.body]).toEqual([500, errorBody(500, 'The callback could not be read.')]);
    expect([handled, passedOn]).toEqual([[], []]);
    expect(outcomes).toMatchObject([{ outcome: 'invalid', error: { cause: { message: 'a trap' } } }]);
    expect(logged).toMatchObject([{ level: 'error', details: { err: { code: 'BODY_CONSUMED' } } }]);
  });

  test.each([
    ['bytes', leaving((bytes) => new Uint8Array(bytes))],
    ['text', leaving((bytes) => bytes.toString())],
    ['bytes, beside the empty body of a parser that has parsed nothing', leaving((bytes) => bytes, {})],
  ])('a body that was left in request.rawBody as %s is read there', async (_what, reader) => {
    const { url, handled } = await startRecording(server, {}, { before: [reader] });
    const callback = manyScripts();
    expect((await post(url, callback)).status).toBe(200);
    expect(handled).toEqual([callback]);
    expect((await post(url, '{')).body).toBe(errorBody(400, 'The body is not JSON.'));
    expect((await post(url, Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(400);
  });

  test('a request.body that was parsed comes before request.rawBody', async () => {
    const { options, handled } = recordingOptions();
    const callback = transferSucceeded();
    const { url } = await start(server, options, { before: [leaving(() => 'not JSON', callback)] });
    expect((await post(url, {})).status).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test.each(moments)('a body that breaks off %s runs nothing, and the server goes on', async (_when, moment) => {
    const { options, handled, logged } = recordingOptions();
    const whole = JSON.stringify(transferFailed());
    let arrived = 0;
    let closed: Promise<unknown> | undefined;
    const { url, passedOn } = await start(server, options, {
      before: [
        async (request, _response, next) => {
          if (request.headers['x-broken'] !== undefined) {
            closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
            arrived += 1;
            await moment(closed);
          }
          next();
        },
      ],
    });
    const response = await overSocket(url, async (socket) => {
      socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked', 'X-Broken': 'yes' }));
      // All but the end of the last chunk.
      socket.write(chunk(whole));
      await vi.waitFor(() => {
        expect(arrived).toBe(1);
      });
      socket.destroy();
    });
    await closed;
    expect(response).toBe('');
    expect((await post(url, whole)).body).toBe('{"outcome":"processed"}');
    expect(handled).toHaveLength(1);
    expect(logged).toEqual([]);
    expect(passedOn).toEqual([]);
  });
});

describe('readBody', () => {
  test.each(moments)('readBody resolves with undefined if the client has disconnected %s', async (_when, moment) => {
    const read = later();
    let body: unknown = 'none yet';
    const server = createServer((request) => {
      const closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
      client.destroy();
      void moment(closed)
        .then(() => readBody(request, 1_000))
        .then((found) => {
          body = found;
          read.resolve();
        });
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const client = httpRequest({ port: (server.address() as AddressInfo).port, method: 'POST', headers: json });
    client.on('error', () => undefined).write('{');
    await read.promise;
    expect(body).toBeUndefined();
  });

  test('an error of a request that another host has made does not end the process', async () => {
    // Node's own requests keep an error to themselves while nobody listens; those of test tools and shims do not.
    const request = new Readable({ read: () => undefined });
    const body = readBody(Object.assign(request, { headers: { 'content-type': 'application/json' } }) as never, 1_000);
    request.destroy(new Error('gone'));
    expect(await body).toBeUndefined();
  });
});
