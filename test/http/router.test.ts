import { describe, expect, onTestFinished, test } from 'vitest';
import { transferCallbackReceiver, transferCallbackRouter, urlToken } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import express from 'express';
import {
  edges,
  errorBody,
  expressEdges,
  head,
  mountPath,
  notFoundBody,
  overSocket,
  post,
  serve,
  statusOf,
  witness,
  type Edge,
} from '../support/http.js';

async function start(edge: Edge, ...args: Parameters<Edge['start']>) {
  const started = await edge.start(...args);
  onTestFinished(started.close);
  return started;
}

describe.each(edges)('on $name', (edge) => {
  test('a callback runs the handler of its event, once, with what was sent and where it came from', async () => {
    const { options } = witness();
    const calls: unknown[] = [];
    const { url } = await start(edge, {
      ...options,
      onSuccess: (callback, { source, tx }) => calls.push(['onSuccess', callback, source, tx]),
      onFailed: (callback, { source, tx }) => calls.push(['onFailed', callback, source, tx]),
    });
    const callbacks = [
      transferSucceeded(),
      transferFailed({ paymentMethod: 'bank', walletNumber: null, bankAccount: { iban: 'CM21' } }),
    ];
    for (const callback of callbacks) {
      expect((await post(url, callback)).body).toBe('{"outcome":"processed"}');
      expect((await post(url, callback)).body).toBe('{"outcome":"duplicate"}');
    }
    expect(calls).toEqual([
      ['onSuccess', callbacks[0], 'http', undefined],
      ['onFailed', callbacks[1], 'http', undefined],
    ]);
  });

  test.each([
    '',
    '/',
    '/token',
    '/token/',
    '?q=1',
    '/?q=1',
    '/token?q=/a/b',
    '/%2F',
    '/a%20b',
    '/..%2f',
    '/t?',
    '/%zz',
  ])('a callback at the mount point and %s is a delivery', async (below) => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const callback = transferSucceeded();
    // Over a socket: a client's URL parser would tidy the path.
    const bytes = JSON.stringify(callback);
    const answer = await overSocket(url, (socket) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
      socket.write(head(url, headers).replace(mountPath, mountPath + below) + bytes);
    });
    expect(statusOf(answer)).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test('nothing is left to the next middleware, whatever the method', async () => {
    const { url, passedOn } = await start(edge, witness().options);
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      for (const below of ['', '/', '/token']) {
        const answer = await post(url + below, {}, { method });
        expect(answer.body).toBe(errorBody(405, 'A callback is a POST.'));
      }
    }
    expect(passedOn).toEqual([]);
  });

  test('two edges on one receiver share one record of what was done', async () => {
    const { options, handled } = witness();
    const receiver = transferCallbackReceiver(options);
    const first = await start(edge, { receiver });
    const second = await start(edge, { receiver });
    const callback = transferSucceeded();
    expect((await post(first.url, callback)).body).toBe('{"outcome":"processed"}');
    expect((await post(second.url, callback)).body).toBe('{"outcome":"duplicate"}');
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'duplicate', source: 'direct' });
    expect(handled).toEqual([callback]);
  });
});

describe.each(expressEdges)('on $name', (edge) => {
  test.each([
    `${mountPath}/a/b`,
    `${mountPath}/a/b/`,
    `${mountPath}/a//`,
    `${mountPath}/a/b?q=1`,
    `${mountPath}x`,
    '/callbacks',
    '/',
  ])('a request at %s is left to the app', async (path) => {
    const { options, handled, logged } = witness();
    const { url } = await start(edge, options);
    for (const method of ['POST', 'GET']) {
      const answer = await post(new URL(path, url).href, transferSucceeded(), { method });
      expect([answer.status, answer.body]).toEqual([404, notFoundBody]);
    }
    expect(handled).toEqual([]);
    expect(logged).toEqual([]);
  });

  test('a request target with scheme and host is the same address', async () => {
    const { options, handled } = witness();
    const { url } = await start(edge, options);
    const callback = transferSucceeded();
    const bytes = JSON.stringify(callback);
    const answer = await overSocket(url, (socket) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': bytes.length };
      socket.write(head(url, headers).replace(mountPath, url) + bytes);
    });
    expect(statusOf(answer)).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test("an error of an earlier middleware is the app's own affair", async () => {
    const { options, handled } = witness();
    const { url, passedOn } = await start(edge, options, {
      before: [
        (_request, _response, next) => {
          next(new Error('no session'));
        },
      ],
    });
    expect((await post(url, transferSucceeded())).body).toBe('all is well');
    expect(passedOn).toHaveLength(1);
    expect(handled).toEqual([]);
  });
});

test('routers work below routers, with parameters in their mount point, side by side', async () => {
  const { options, handled } = witness();
  const secret = 'a-secret-of-the-first-tenant';
  const callbacks = express.Router();
  callbacks.use('/open', transferCallbackRouter(options));
  callbacks.use('/guarded', transferCallbackRouter({ ...options, verify: urlToken(secret) }));
  const app = express().use('/:tenant/callbacks', callbacks);
  const { url, close } = await serve(app);
  onTestFinished(close);

  const callback = transferSucceeded();
  expect((await post(`${url}/acme/callbacks/open`, callback)).status).toBe(200);
  expect((await post(`${url}/acme/callbacks/guarded`, callback)).status).toBe(401);
  expect((await post(`${url}/acme/callbacks/guarded/${secret}`, callback)).status).toBe(200);
  expect(handled).toEqual([callback]);
});

describe('options of the edge', () => {
  const { options } = witness();
  const receiver = transferCallbackReceiver(options);
  const known = 'store, onSuccess, onFailed, confirm, schema, onOutcome, logger';
  const times = 'inFlightWaitMs, leaseMs, handlerTimeoutMs, storeTimeoutMs, retentionMs';

  const wrong: [string, object, string][] = [
    [
      'verify: null',
      { ...options, verify: null },
      'Expected `verify` to be a function or a list of at least one, got null.',
    ],
    [
      'verify: true',
      { ...options, verify: true },
      'Expected `verify` to be a function or a list of at least one, got true.',
    ],
    [
      'verify: []',
      { ...options, verify: [] },
      'Expected `verify` to be a function or a list of at least one, got an array.',
    ],
    [
      'a list with a gap',
      { ...options, verify: [() => true, undefined] },
      'Expected `verify` to be a function or a list of at least one, got an array.',
    ],
    [
      'bodyLimitBytes: 0',
      { ...options, bodyLimitBytes: 0 },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got 0.',
    ],
    [
      'bodyLimitBytes: "100kb"',
      { ...options, bodyLimitBytes: '100kb' },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got "100kb".',
    ],
    [
      'bodyLimitBytes: 1.5',
      { receiver, bodyLimitBytes: 1.5 },
      'Expected `bodyLimitBytes` to be a whole number from 1 to 9007199254740991, got 1.5.',
    ],
    [
      'an option that does not exist',
      { ...options, verifier: () => true },
      `Unknown option \`verifier\`; known are verify, bodyLimitBytes, ${known}, ${times}.`,
    ],
    [
      "a receiver and a receiver's option",
      { receiver, store: options.store },
      'Unknown option `store`; known are verify, bodyLimitBytes, receiver.',
    ],
    [
      'no store',
      { ...options, store: undefined },
      'Expected `store` to be a store, such as memoryStore(), redisStore(client) or postgresStore(pool), got undefined.',
    ],
    [
      'no handler',
      { store: options.store, onSuccess: () => 1 },
      'Expected `onFailed` to be a function, got undefined.',
    ],
  ];

  describe.each(edges)('on $name', (edge) => {
    test.each(wrong)('%s is refused by name', async (_what, given, message) => {
      await expect(edge.start(given as Parameters<Edge['start']>[0])).rejects.toMatchObject({
        name: 'TransferCallbackError',
        code: 'INVALID_OPTION',
        message,
      });
    });

    test.each([
      ['nothing', undefined],
      ['null', null],
      ['a text', 'https://example.test'],
      ['a receiver that is none', { receiver: {} }],
      ['a receiver that is null', { receiver: null }],
    ])('%s instead of options is refused', async (_what, given) => {
      await expect(edge.start(given as unknown as Parameters<Edge['start']>[0])).rejects.toMatchObject({
        code: 'INVALID_OPTION',
      });
    });
  });
});
