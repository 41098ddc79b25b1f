import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import { describe, expect, test, vi } from 'vitest';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { readBody } from '../../src/http/body.js';
import { containing } from '../support/helpers/containing.js';
import { nodeServers, type Middleware } from '../support/servers/http-servers.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { errorBody, post } from '../support/helpers/post.js';
import { chunk, head, overSocket } from '../support/helpers/sockets.js';
import { later } from '../core/support.js';
import { doing, json, leaving, manyScripts, startRecording } from './support.js';

const cause =
  'Another middleware, or a hook that listens to `data`, has read the body and left it neither in request.body nor in ' +
  'request.rawBody: mount the router before that middleware, or remove the hook.';
const readers: [string, Middleware][] = [
  ['by iterating', doing((request) => request.toArray())],
  ['by its first piece only', doing((request) => once(request, 'data').then(() => request.pause()))],
  [
    'by a hook that listens to `data`',
    doing((request) =>
      once(
        request.on('data', () => undefined),
        'end',
      ),
    ),
  ],
  ['into a rawBody that is a list', leaving((bytes) => ({ rawBody: [bytes], body: null }))],
];

const throws = (): never => {
  throw new Error('a trap');
};
const traps: [string, Middleware][] = [
  ['a getter', doing((request) => Object.defineProperty(request, 'body', { get: throws }))],
  ['a proxy without properties', doing((request) => (request.body = new Proxy({ event: '' }, { get: throws })))],
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
      expect([handled, passedOn]).toEqual([[], []]);
      const err = { code: 'BODY_CONSUMED', message: containing(cause) };
      const issues = [{ path: [], message: cause }];
      expect(logged).toMatchObject([{ details: { outcome: 'invalid', issues, err } }]);
    },
  );

  test.each(traps)('a body that throws because it is %s is a fault of the app: 500', async (_what, trap) => {
    const outcomes: unknown[] = [];
    const onOutcome = (outcome: unknown): unknown => outcomes.push(outcome);
    const { url, passedOn, handled, logged } = await startRecording(server, { onOutcome }, { before: [trap] });
    const response = await post(url, transferSucceeded());
    expect([response.status, response.body]).toEqual([500, errorBody(500, 'The callback could not be read.')]);
    expect([handled, passedOn]).toEqual([[], []]);
    expect(outcomes).toMatchObject([{ outcome: 'invalid', error: { cause: { message: 'a trap' } } }]);
    expect(logged).toMatchObject([{ level: 'error', details: { err: { code: 'BODY_CONSUMED' } } }]);
  });

  test.each([
    ['bytes', leaving((bytes) => ({ rawBody: new Uint8Array(bytes) }))],
    ['text', leaving((bytes) => ({ rawBody: bytes.toString() }))],
    ['bytes, beside the empty body of a parser that has parsed nothing', leaving((rawBody) => ({ rawBody, body: {} }))],
  ])('a body that was left in request.rawBody as %s is read there', async (_what, reader) => {
    const { url, handled } = await startRecording(server, {}, { before: [reader] });
    const callback = manyScripts();
    expect((await post(url, callback)).status).toBe(200);
    expect(handled).toEqual([callback]);
    expect((await post(url, '{')).body).toBe(errorBody(400, 'The body is not JSON.'));
    expect((await post(url, Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(400);
  });

  test('a request.body that was parsed comes before request.rawBody', async () => {
    const callback = transferSucceeded();
    const before = leaving(() => ({ rawBody: 'not JSON', body: callback }));
    const { url, handled } = await startRecording(server, {}, { before: [before] });
    expect((await post(url, {})).status).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test.each(moments)('a body that breaks off %s runs nothing, and the server goes on', async (_when, moment) => {
    const whole = JSON.stringify(transferFailed());
    let closed: Promise<unknown> | undefined;
    const before = doing((request) => {
      if (request.headers['x-broken'] === undefined) return undefined;
      closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
      return moment(closed);
    });
    const { url, passedOn, handled, logged } = await startRecording(server, {}, { before: [before] });
    const response = await overSocket(url, async (socket) => {
      socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked', 'X-Broken': 'yes' }));
      // All but the end of the last chunk.
      socket.write(chunk(whole));
      await vi.waitFor(() => {
        expect(closed).toBeDefined();
      });
      socket.destroy();
    });
    await closed;
    expect(response).toBe('');
    expect((await post(url, whole)).body).toBe('{"outcome":"processed"}');
    expect(handled).toHaveLength(1);
    expect([logged, passedOn]).toEqual([[], []]);
  });
});

test.each(moments)('readBody resolves with undefined if the client has disconnected %s', async (_when, moment) => {
  const read = later<unknown>();
  const url = await serveForTest((request) => {
    const closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
    client.destroy();
    void moment(closed)
      .then(() => readBody(request, 1_000))
      .then(read.resolve);
  });
  const client = httpRequest(url, { method: 'POST', headers: json });
  client.on('error', () => undefined).write('{');
  expect(await read.promise).toBeUndefined();
});

test('an error of a request that another host has made does not end the process', async () => {
  // Node's own requests keep an error to themselves while nobody listens; those of test tools and shims do not.
  const request = new Readable({ read: () => undefined });
  const body = readBody(Object.assign(request, { headers: { 'content-type': 'application/json' } }) as never, 1_000);
  request.destroy(new Error('gone'));
  expect(await body).toBeUndefined();
});
