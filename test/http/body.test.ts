import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import {
  chunk,
  edges,
  errorBody,
  head,
  overSocket,
  post,
  statusOf,
  witness,
  type Edge,
  type Middleware,
} from '../support/http.js';

async function start(edge: Edge, ...args: Parameters<Edge['start']>) {
  const started = await edge.start(...args);
  onTestFinished(started.close);
  return started;
}

/** A callback whose text takes one to four bytes a character. */
function manyScripts() {
  return transferSucceeded({
    reference: 'Élodie — 付款 — مرحبا — 😀',
    vouchercode: '\u0000"\\\u2028',
    provider: 'Ωμέγα',
  });
}

const json = { 'Content-Type': 'application/json' };
interface Body {
  body?: unknown;
}

/** Reads the whole body, and leaves it as `parse` makes it. */
function ownParser(parse: (bytes: Buffer) => unknown): Middleware {
  return async (request: IncomingMessage & Body, _response, next) => {
    request.body = parse(Buffer.concat((await request.toArray()) as Buffer[]));
    next();
  };
}

/** How an app may have treated the request before the package sees it. */
const treatments: [string, (parsers: Edge['parsers']) => Middleware[]][] = [
  ['left alone', () => []],
  ['after express.json()', (express) => [express.json()]],
  ['after express.json() for every type', (express) => [express.json({ type: '*/*' })]],
  ['after express.json() that is not strict', (express) => [express.json({ strict: false })]],
  ['after express.json() for another type', (express) => [express.json({ type: 'application/vnd.other+json' })]],
  ['after express.raw()', (express) => [express.raw({ type: 'application/json' })]],
  ['after express.text()', (express) => [express.text({ type: 'application/json' })]],
  ['after express.urlencoded()', (express) => [express.urlencoded({ extended: true })]],
  ['after express.text() for plain text', (express) => [express.text()]],
  [
    'after all parsers in a row',
    (express) => [express.urlencoded({ extended: false }), express.text(), express.raw(), express.json()],
  ],
  ['after express.json() twice', (express) => [express.json(), express.json()]],
  ['after a parser that leaves bytes of no Buffer', () => [ownParser((bytes) => new Uint8Array(bytes))]],
  [
    'after a parser that leaves a part of a longer buffer',
    () => [
      ownParser((bytes) => {
        const longer = Buffer.concat([Buffer.from('before'), bytes, Buffer.from('after')]);
        return longer.subarray(6, 6 + bytes.length);
      }),
    ],
  ],
  ['after a parser that leaves text', () => [ownParser((bytes) => bytes.toString())]],
  [
    'after a parser that leaves an object without a prototype',
    () => [ownParser((bytes) => Object.assign(Object.create(null) as object, JSON.parse(bytes.toString())))],
  ],
  [
    'paused',
    () => [
      (request, _response, next) => {
        request.pause();
        next();
      },
    ],
  ],
  [
    'paused while its bytes arrive',
    () => [
      (request, _response, next) => {
        request.pause();
        setTimeout(next, 5);
      },
    ],
  ],
  [
    'with its bytes turned into text',
    () => [
      (request, _response, next) => {
        request.setEncoding('utf8');
        next();
      },
    ],
  ],
  [
    'with its bytes turned into Latin-1 text',
    () => [
      (request, _response, next) => {
        request.setEncoding('latin1');
        next();
      },
    ],
  ],
  [
    'with its bytes turned into Base64 text',
    () => [
      (request, _response, next) => {
        request.setEncoding('base64');
        next();
      },
    ],
  ],
  [
    'with somebody counting its bytes',
    () => [
      (request, _response, next) => {
        request.on('data', () => undefined);
        next();
      },
    ],
  ],
  [
    'after a wait',
    () => [
      (_request, _response, next) => {
        setTimeout(next, 5);
      },
    ],
  ],
  [
    'with an empty request.body',
    () => [
      (request: IncomingMessage & Body, _response, next) => {
        request.body = {};
        next();
      },
    ],
  ],
  [
    'with request.body null',
    () => [
      (request: IncomingMessage & Body, _response, next) => {
        request.body = null;
        next();
      },
    ],
  ],
];

describe.each(edges)('on $name', (edge) => {
  describe.each(treatments)('a body %s', (_how, treat) => {
    const before = treat(edge.parsers);

    test('is read whole, in one piece', async () => {
      const { options, handled } = witness();
      const { url } = await start(edge, options, { before });
      const callback = manyScripts();
      expect((await post(url, callback)).body).toBe('{"outcome":"processed"}');
      expect(handled).toEqual([callback]);
    });

    test('is read whole, in chunks of a byte', async () => {
      const { options, handled } = witness();
      const { url } = await start(edge, options, { before });
      const callback = manyScripts();
      const answer = await overSocket(url, (socket) => {
        socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }));
        for (const byte of Buffer.from(JSON.stringify(callback))) socket.write(chunk(Uint8Array.of(byte)));
        socket.write(chunk(''));
      });
      expect(statusOf(answer)).toBe(200);
      expect(handled).toEqual([callback]);
    });
  });

  test('a character cut in two by packets that come one after the other is put together', async () => {
    const { options, handled } = witness();
    let chunks = 0;
    const { url } = await start(edge, options, {
      before: [
        (request, _response, next) => {
          request.on('data', () => (chunks += 1));
          next();
        },
      ],
    });
    const callback = transferSucceeded({ reference: '😀' });
    const bytes = Buffer.from(JSON.stringify(callback));
    const cut = bytes.indexOf('😀') + 2;
    const answer = await overSocket(url, async (socket) => {
      socket.write(head(url, { ...json, 'Content-Length': bytes.length }));
      socket.write(bytes.subarray(0, cut));
      await vi.waitFor(() => {
        expect(chunks).toBe(1);
      });
      socket.write(bytes.subarray(cut));
    });
    expect(statusOf(answer)).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test.each(['json', 'raw', 'text'] as const)('a compressed body is read by express.%s() in front', async (parser) => {
    const { options, handled } = witness();
    const { url } = await start(edge, options, { before: [edge.parsers[parser]({ type: 'application/json' })] });
    const callback = manyScripts();
    const headers = { 'Content-Encoding': 'gzip' };
    expect((await post(url, gzipSync(JSON.stringify(callback)), { headers })).status).toBe(200);
    expect(handled).toEqual([callback]);
  });

  describe('the content type', () => {
    test.each([
      'application/json',
      'Application/JSON',
      'application/json;',
      'application/json; charset=utf-8',
      'application/json;charset=UTF-8',
      'application/json; charset="utf-8"',
      'application/json; charset=utf8',
      'application/json ; version=1 ; charset=Utf-8',
      'application/json; profile="x;charset=latin1"',
      'application/json; profile="a\\";charset=latin1;\\""; charset="utf-8"',
    ])('%s is read', async (type) => {
      const { options, handled } = witness();
      const { url } = await start(edge, options);
      const callback = manyScripts();
      expect((await post(url, callback, { headers: { 'Content-Type': type } })).status).toBe(200);
      expect(handled).toEqual([callback]);
    });

    const wrongType = 'Content-Type must be application/json.';
    const wrongCharset = 'The charset must be UTF-8.';
    const compressed = 'The body must not be compressed.';
    test.each([
      [{ 'Content-Type': undefined }, wrongType],
      [{ 'Content-Type': '' }, wrongType],
      [{ 'Content-Type': 'text/plain' }, wrongType],
      [{ 'Content-Type': 'application/x-www-form-urlencoded' }, wrongType],
      [{ 'Content-Type': 'multipart/form-data; boundary=x' }, wrongType],
      [{ 'Content-Type': 'application/json5' }, wrongType],
      [{ 'Content-Type': 'application/jsonp' }, wrongType],
      [{ 'Content-Type': 'application/x-ndjson' }, wrongType],
      [{ 'Content-Type': 'application/vnd.api+json' }, wrongType],
      [{ 'Content-Type': 'application/json, text/plain' }, wrongType],
      [{ 'Content-Type': 'text/plain; application/json' }, wrongType],
      [{ 'Content-Type': 'json' }, wrongType],
      [{ 'Content-Type': '*/*' }, wrongType],
      [{ 'Content-Type': 'application/json; charset=iso-8859-1' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=us-ascii' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=utf-16' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=UTF-16LE' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=utf-7' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=' }, wrongCharset],
      [{ 'Content-Type': 'application/json; charset=utf-8-sig' }, wrongCharset],
      [{ 'Content-Type': 'application/json; profile="x"; charset=latin1' }, wrongCharset],
      [{ 'Content-Type': 'application/json; profile="x;"; charset="latin1"' }, wrongCharset],
      [{ 'Content-Type': '"application/json;"' }, wrongType],
      [{ 'Content-Encoding': 'gzip' }, compressed],
      [{ 'Content-Encoding': 'x-gzip' }, compressed],
      [{ 'Content-Encoding': 'deflate' }, compressed],
      [{ 'Content-Encoding': 'br' }, compressed],
      [{ 'Content-Encoding': 'zstd' }, compressed],
      [{ 'Content-Encoding': 'identity, gzip' }, compressed],
    ])('%j is answered 415', async (headers, message) => {
      const { options, handled } = witness();
      const { url } = await start(edge, options);
      const answer = await post(url, manyScripts(), { headers });
      expect([answer.status, answer.body]).toEqual([415, errorBody(415, message)]);
      expect(handled).toEqual([]);
    });

    test.each(['identity', 'Identity', 'IDENTITY'])('%s, the encoding that is none, is read', async (encoding) => {
      for (const before of [[], [edge.parsers.json()]]) {
        const { options } = witness();
        const { url } = await start(edge, options, { before });
        expect((await post(url, manyScripts(), { headers: { 'Content-Encoding': encoding } })).status).toBe(200);
      }
    });
  });

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
    ])('%s lets through exactly as many bytes, and not one more', async (_what, bodyLimitBytes, limit) => {
      const { options, handled, logged } = witness();
      const { url } = await start(edge, { ...options, bodyLimitBytes });
      expect((await post(url, callbackOf(limit))).status).toBe(200);
      expect(statusOf(await sendChunked(url, callbackOf(limit)))).toBe(200);
      expect(handled).toHaveLength(2);
      expect(logged).toEqual([]);

      const tooLarge = errorBody(413, `The body must not be longer than ${limit} bytes.`);
      const answer = await post(url, callbackOf(limit + 1));
      expect([answer.status, answer.body]).toEqual([413, tooLarge]);
      const chunked = await sendChunked(url, callbackOf(limit + 1));
      expect(statusOf(chunked)).toBe(413);
      expect(chunked.endsWith(tooLarge)).toBe(true);
      expect(handled).toHaveLength(2);
    });

    test('is judged by Content-Length before a byte has come', async () => {
      const { options } = witness();
      const { url } = await start(edge, options);
      const answer = await overSocket(url, (socket) => socket.write(head(url, { ...json, 'Content-Length': 102_401 })));
      expect(statusOf(answer)).toBe(413);
    });

    test('ends a body that has no end', async () => {
      const { options } = witness();
      const { url } = await start(edge, options);
      const answer = await overSocket(url, (socket) => {
        socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }));
        const filling = chunk(Buffer.alloc(16_384, '['));
        for (let sent = 0; sent < 7; sent += 1) socket.write(filling);
      });
      expect(statusOf(answer)).toBe(413);
    });

    test('does not count what a parser in front has read', async () => {
      const { options } = witness();
      const { url } = await start(edge, { ...options, bodyLimitBytes: 10 }, { before: [edge.parsers.json()] });
      expect((await post(url, callbackOf(1_000))).status).toBe(200);
    });
  });

  describe('an empty body', () => {
    const empty = errorBody(400, 'The body is not JSON.');
    test.each([
      ['left alone', []],
      // The parser leaves an empty object, whether it has read nothing or `{}`.
      ['after express.json()', [edge.parsers.json()]],
      ['after express.raw()', [edge.parsers.raw({ type: '*/*' })]],
      ['after express.text()', [edge.parsers.text({ type: '*/*' })]],
    ])('%s is answered 400', async (_how, before) => {
      const { options, handled } = witness();
      const { url } = await start(edge, options, { before });
      expect((await post(url, '')).status).toBe(400);
      expect(handled).toEqual([]);
      const undeclared = await overSocket(url, (socket) => socket.write(head(url, json)));
      expect(statusOf(undeclared)).toBe(400);
    });

    test('left alone is named in the answer', async () => {
      const { url } = await start(edge, witness().options);
      expect((await post(url, '')).body).toBe(empty);
    });

    test('in chunks is answered 400', async () => {
      const { url } = await start(edge, witness().options);
      const answer = await overSocket(url, (socket) => {
        socket.write(head(url, { ...json, 'Transfer-Encoding': 'chunked' }) + '0\r\n\r\n');
      });
      expect(statusOf(answer)).toBe(400);
      expect(answer.endsWith(empty)).toBe(true);
    });

    test("that somebody has drained is the app's fault, and nobody waits for its end", async () => {
      const { url } = await start(edge, witness().options, {
        before: [
          async (request, _response, next) => {
            await once(request.resume(), 'end');
            setTimeout(next, 5);
          },
        ],
      });
      expect((await post(url, '')).status).toBe(500);
    });
  });

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
    test.each(readers)("%s is the app's fault: 500, and the log names the cause", async (_how, reader) => {
      const { options, handled, logged } = witness();
      const { url, passedOn } = await start(edge, options, { before: [reader] });
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
    });

    test.each([
      ['bytes', leaving((bytes) => bytes)],
      ['bytes of no Buffer', leaving((bytes) => new Uint8Array(bytes))],
      ['text', leaving((bytes) => bytes.toString())],
      ['bytes, beside the empty body of a parser that has parsed nothing', leaving((bytes) => bytes, {})],
    ])('but in request.rawBody as %s is read there', async (_what, reader) => {
      const { options, handled } = witness();
      const { url } = await start(edge, options, { before: [reader] });
      const callback = manyScripts();
      expect((await post(url, callback)).status).toBe(200);
      expect(handled).toEqual([callback]);
      expect((await post(url, '{')).body).toBe(errorBody(400, 'The body is not JSON.'));
      expect((await post(url, Uint8Array.of(0x22, 0xff, 0x22))).status).toBe(400);
    });

    test('a request.body that was parsed comes before request.rawBody', async () => {
      const { options, handled } = witness();
      const callback = transferSucceeded();
      const { url } = await start(edge, options, { before: [leaving(() => 'not JSON', callback)] });
      expect((await post(url, {})).status).toBe(200);
      expect(handled).toEqual([callback]);
    });
  });

  describe('a body that is not UTF-8', () => {
    const encodings: [string, number[]][] = [
      ['a lone continuation byte', [0x80]],
      ['two of them', [0x80, 0xbf]],
      ['a byte that UTF-8 never uses', [0xff]],
      ['another one', [0xfe]],
      ['Latin-1', [0xe9]],
      ['an overlong slash', [0xc0, 0xaf]],
      ['an overlong NUL', [0xc0, 0x80]],
      ['an overlong form of three bytes', [0xe0, 0x80, 0xaf]],
      ['an overlong form of four bytes', [0xf0, 0x80, 0x80, 0xaf]],
      ['a surrogate', [0xed, 0xa0, 0x80]],
      ['a pair of surrogates', [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
      ['a character beyond the last', [0xf4, 0x90, 0x80, 0x80]],
      ['a form of five bytes', [0xf8, 0x88, 0x80, 0x80, 0x80]],
      ['two of three bytes', [0xe2, 0x82]],
      ['three of four bytes', [0xf0, 0x9f, 0x98]],
    ];
    const between = JSON.stringify(transferSucceeded({ reference: '|' })).split('|');
    const invalid = errorBody(400, 'The body is not UTF-8.');

    test.each(encodings)('but holds %s is answered 400', async (_what, bytes) => {
      const { options, handled } = witness();
      const unread = await start(edge, options);
      const raw = await start(edge, options, { before: [edge.parsers.raw({ type: 'application/json' })] });
      const [first = '', last = ''] = between;
      for (const body of [
        Buffer.concat([Buffer.from(first), Uint8Array.from(bytes), Buffer.from(last)]),
        Buffer.concat([Buffer.from(first + last), Uint8Array.from(bytes)]),
        Buffer.concat([Uint8Array.from(bytes), Buffer.from(first + last)]),
      ]) {
        for (const { url } of [unread, raw]) {
          const answer = await post(url, body);
          expect([answer.status, answer.body]).toEqual([400, invalid]);
        }
      }
      expect(handled).toEqual([]);
    });

    test('but UTF-16 is answered 400', async () => {
      const { options, handled } = witness();
      const { url } = await start(edge, options);
      const text = JSON.stringify(transferSucceeded());
      const littleEndian = Buffer.from(`\ufeff${text}`, 'utf16le');
      for (const body of [littleEndian, Buffer.from(littleEndian).swap16()]) {
        expect((await post(url, body)).body).toBe(invalid);
      }
      expect((await post(url, Buffer.from(text, 'utf16le'))).body).toBe(errorBody(400, 'The body is not JSON.'));
      expect(handled).toEqual([]);
    });
  });

  test.each([
    ['left alone', []],
    ['after express.json()', [edge.parsers.json()]],
    ['after express.raw()', [edge.parsers.raw({ type: '*/*' })]],
    ['after express.text()', [edge.parsers.text({ type: '*/*' })]],
  ])('one byte order mark before the JSON is dropped, %s', async (_how, before) => {
    const { options, handled } = witness();
    const { url } = await start(edge, options, { before });
    const callback = transferSucceeded({ reference: '\ufeff' });
    expect((await post(url, `\ufeff${JSON.stringify(callback)}`)).status).toBe(200);
    expect(handled).toEqual([callback]);
  });

  describe('a body that ends before its end', () => {
    const whole = JSON.stringify(transferFailed());
    const framings: [string, (url: string) => Buffer][] = [
      [
        'with a Content-Length',
        (url) => Buffer.from(head(url, { ...json, 'Content-Length': whole.length }) + whole.slice(0, -1)),
      ],
      [
        'in chunks, all but the last one',
        (url) => Buffer.concat([Buffer.from(head(url, { ...json, 'Transfer-Encoding': 'chunked' })), chunk(whole)]),
      ],
    ];
    const moments: [string, (closed: Promise<unknown>) => Promise<unknown>][] = [
      ['while it is read', () => Promise.resolve()],
      ['before the package sees it', (closed) => closed],
    ];

    describe.each(framings)('%s', (_how, beginning) => {
      test.each(moments)('%s is not answered and runs nothing; the server goes on', async (_when, moment) => {
        const { options, handled, logged } = witness();
        let arrived = 0;
        let closed: Promise<unknown> | undefined;
        const { url, passedOn } = await start(edge, options, {
          before: [
            async (request, _response, next) => {
              if (request.headers['x-broken'] === undefined) {
                next();
                return;
              }
              closed = new Promise((resolve) => request.once('close', resolve).once('error', resolve));
              arrived += 1;
              await moment(closed);
              next();
            },
          ],
        });
        const answer = await overSocket(url, async (socket) => {
          socket.write(beginning(url).toString().replace('Connection: close', 'X-Broken: yes'));
          await vi.waitFor(() => {
            expect(arrived).toBe(1);
          });
          socket.destroy();
        });
        await closed;
        expect(answer).toBe('');
        expect((await post(url, whole)).body).toBe('{"outcome":"processed"}');
        expect(handled).toHaveLength(1);
        expect(logged).toEqual([]);
        expect(passedOn).toEqual([]);
      });
    });
  });
});
