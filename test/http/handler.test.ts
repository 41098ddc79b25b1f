import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { ipAllowList, transferCallbackHandler, urlToken } from 'transfer-callbacks/web';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { containing } from '../support/helpers/containing.js';
import { errorBody } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { json } from './support.js';
import type { WebRequest } from '../../src/http/handler.js';

const url = 'https://merchant.example/callbacks/transfers';

/** A request with this body, which the handler must not have to send. */
function toRequest(
  body: NonNullable<RequestInit['body']> | null,
  given: { url?: string; headers?: Record<string, string> } = {},
): Request {
  const init: RequestInit & { duplex: 'half' } = {
    method: 'POST',
    headers: { ...json, ...given.headers },
    body,
    duplex: 'half',
  };
  return new Request(given.url ?? url, init);
}

function toStream(source: ConstructorParameters<typeof ReadableStream>[0]): ReadableStream {
  return new ReadableStream(source, { highWaterMark: 0 });
}

/** A stream of these chunks, whatever they are. */
function streamOf(...chunks: unknown[]): ReadableStream {
  return toStream({
    pull(controller) {
      if (chunks.length > 0) controller.enqueue(chunks.shift());
      else controller.close();
    },
  });
}

async function readResponse(response: Response): Promise<[number, string]> {
  return [response.status, await response.text()];
}

/** Hands a request to a handler with recording options. */
async function receive(request: unknown) {
  const { options, handled, logged } = recordingOptions();
  const response = await transferCallbackHandler(options)(request as WebRequest);
  return { response: await readResponse(response), handled, logged };
}

const callback = transferSucceeded({ reference: 'Élodie — 付款' });
const text = JSON.stringify(callback);
const bytes = new TextEncoder().encode(text);
const unreadable = [500, errorBody(500, 'The callback could not be read.')];

describe('the body of a web request', () => {
  test.each([
    ['text', text],
    ['a stream of a byte at a time', streamOf(...Array.from(bytes, (byte) => Uint8Array.of(byte)))],
    ['a stream with empty chunks', streamOf(new Uint8Array(), bytes, new Uint8Array())],
    ['a stream with the bytes of another realm', streamOf(runInNewContext('Uint8Array.from(bytes)', { bytes }))],
  ])('a request made of %s is read whole', async (_what, body) => {
    const { response, handled } = await receive(toRequest(body));
    expect(response).toEqual([200, '{"outcome":"processed"}']);
    expect(handled).toEqual([callback]);
  });

  const read = toRequest(text);
  const locked = toRequest(text);
  const faults: [string, () => Promise<unknown>][] = [
    ['was read before', async () => (await read.text(), read)],
    ['is being read', () => (locked.body?.getReader(), Promise.resolve(locked))],
    // Its length in characters is not its length in bytes.
    ['is a stream of text', () => Promise.resolve(toRequest(streamOf(text)))],
    ['is a stream of parsed values', () => Promise.resolve(toRequest(streamOf(callback)))],
    [
      'is no stream, because the request is an event',
      () => Promise.resolve({ method: 'POST', headers: json, body: text }),
    ],
    [
      'is missing, because the request is one of node:http',
      () => Promise.resolve(Object.assign(new IncomingMessage(new Socket()), { method: 'POST' })),
    ],
  ];
  test.each(faults)('a body that %s is a fault of the app: 500, and the log names the cause', async (_how, make) => {
    const { response, handled, logged } = await receive(await make());
    expect(response).toEqual(unreadable);
    expect(handled).toEqual([]);
    const err = { code: 'BODY_CONSUMED', message: containing('before anything reads it') };
    expect(logged).toMatchObject([{ details: { err } }]);
  });

  test('a request without a body is not JSON', async () => {
    const { response } = await receive(toRequest(null));
    expect(response).toEqual([400, errorBody(400, 'The body is not JSON.')]);
  });

  test('a body that breaks off runs nothing, and its response acknowledges nothing', async () => {
    let isBegun = false;
    const body = toStream({
      pull(controller) {
        if (isBegun) controller.error(new Error('The client has disconnected.'));
        else controller.enqueue(bytes.subarray(0, 9));
        isBegun = true;
      },
    });
    expect(await receive(toRequest(body))).toEqual({ response: [400, ''], handled: [], logged: [] });
  });
});

describe('the limit of a web request', () => {
  const tooLong = [413, errorBody(413, 'The body must not be longer than 1000 bytes.')];
  const limited = () => transferCallbackHandler({ ...recordingOptions().options, bodyLimitBytes: 1_000 });

  test('a body of a byte too many is refused, and its source is told to stop', async () => {
    let sent = 0;
    let isCancelled = false;
    const body = toStream({
      pull(controller) {
        sent += 1;
        controller.enqueue(Uint8Array.of(91));
      },
      cancel() {
        isCancelled = true;
      },
    });
    expect(await readResponse(await limited()(toRequest(body)))).toEqual(tooLong);
    expect([sent, isCancelled]).toEqual([1_001, true]);
  });

  test.each([
    ['never finishes', () => new Promise<never>(() => undefined)],
    ['fails', () => Promise.reject(new Error('The source is gone.'))],
  ])('the response does not wait for a source whose cancelling %s', async (_how, cancel) => {
    const body = toStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(1_001));
      },
      cancel,
    });
    expect(await readResponse(await limited()(toRequest(body)))).toEqual(tooLong);
    // An unhandled rejection would fail the run.
    await new Promise((resolve) => setImmediate(resolve));
  });
});

describe('the sender of a web request', () => {
  const secret = 'a-secret-long-enough';

  test.each([
    [`${url}/${secret}/?attempt=1#top`, 200],
    [`https://${secret}/`, 401],
    [`${url}#/${secret}`, 401],
  ])('urlToken reads the path of %s: %i', async (at, status) => {
    const handle = transferCallbackHandler({ ...recordingOptions().options, verify: urlToken(secret) });
    expect((await handle(toRequest(text, { url: at }))).status).toBe(status);
  });

  test('a request whose URL has no path has no token', () => {
    // `OPTIONS *` of HTTP/1.1, and what a host may give that is no URL at all.
    for (const at of ['*', '', undefined, 'merchant.example']) {
      expect(urlToken(secret)({ url: at, headers: {} })).toBe(false);
    }
  });

  test('ipAllowList names the cause in the log where the host gives no address', async () => {
    const { options, logged } = recordingOptions();
    const handle = transferCallbackHandler({ ...options, verify: ipAllowList(['203.0.113.0/24']) });
    expect((await handle(toRequest(text, { headers: { 'X-Forwarded-For': '203.0.113.7' } }))).status).toBe(401);
    const message =
      'ipAllowList needs the address of the sender: a web request has none until your app sets `request.ip`.';
    expect(logged).toMatchObject([{ details: { err: { code: 'INVALID_ARGUMENT', message } } }]);
    // A text that is not an address is refused, and is not a fault of the app.
    expect((await handle(Object.assign(toRequest(text), { ip: 'no address' }))).status).toBe(401);
    expect(logged).toHaveLength(2);
    expect(logged[1]?.details).not.toHaveProperty('err');
  });
});

test('the handler responds with 500 and logs the cause where it gets no request at all', async () => {
  const { response, logged } = await receive(undefined);
  expect(response).toEqual([500, '']);
  const message = 'A callback could not be responded to.';
  expect(logged).toMatchObject([{ level: 'error', message, details: { err: { name: 'TypeError' } } }]);
});

describe('what a host passes beside the request', () => {
  test('waitUntil is called as a method of its object, with what goes on after the response', async () => {
    class Context {
      readonly #kept: Promise<void>[] = [];
      waitUntil(work: Promise<void>): void {
        this.#kept.push(work);
      }
      async end(): Promise<number> {
        await Promise.all(this.#kept);
        return this.#kept.length;
      }
    }
    const { options } = recordingOptions();
    const sent: string[] = [];
    const handle = transferCallbackHandler({
      ...options,
      onSuccess({ data }, { afterCommit }) {
        afterCommit(async () => {
          await new Promise(setImmediate);
          sent.push(data.id);
        });
      },
    });
    const context = new Context();
    expect((await handle(toRequest(text), context)).status).toBe(200);
    expect(sent).toEqual([]);
    expect(await context.end()).toBe(1);
    expect(sent).toEqual([callback.data.id]);
  });

  test.each([
    ['the parameters of Next.js', { params: Promise.resolve({}) }],
    ['the address of Deno', { remoteAddr: { transport: 'tcp', hostname: '127.0.0.1', port: 1 } }],
    ['a waitUntil that is no function', { waitUntil: true }],
    [
      'a waitUntil that cannot be read',
      {
        get waitUntil(): never {
          throw new Error('This context has no ExecutionContext');
        },
      },
    ],
    ['nothing', undefined],
    ['null', null as never],
  ])('%s is ignored', async (_what, given) => {
    const { options, logged } = recordingOptions();
    expect((await transferCallbackHandler(options)(toRequest(text), given)).status).toBe(200);
    expect(logged).toEqual([]);
  });
});
