import { createServer } from 'node:net';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferClient, type Transaction, type TransferClientOptions } from 'transfer-callbacks/client';
import { catchError, credentials, refusal, startService, type Reply } from './support.js';

const { data: transaction } = transferSucceeded({ id: 'tr-1', externalId: 'payout-1' });

afterEach(() => {
  vi.restoreAllMocks();
});

const hangUp: Reply = (response) => response.destroy();

describe('createTransfer', () => {
  const request = { callbackUrl: 'https://merchant.example/callbacks', externalId: 'payout-1', amount: 5, extra: [{}] };

  test('posts the request as it is given, with the documented headers, and returns the response as parsed', async () => {
    const { client, received } = await startService([[201, { anything: ['at', 'all'] }]]);
    expect(await client.createTransfer(request)).toEqual({ anything: ['at', 'all'] });
    expect(received).toEqual([
      expect.objectContaining({
        method: 'POST',
        url: '/transactions/transfer',
        headers: expect.objectContaining({
          'x-api-key': credentials.apiKey,
          'x-api-secret': credentials.apiSecret,
          'content-type': 'application/json',
        }) as object,
      }),
    ]);
    expect(JSON.parse(received[0]?.body ?? '')).toEqual(request);
    expect(received[0]?.headers).toMatchObject({ 'content-length': String(received[0]?.body.length) });
  });

  test('keeps the path of the base URL, whether it ends with a slash or not', async () => {
    const { baseUrl, received } = await startService([[200, {}]]);
    for (const base of [`${baseUrl}/api/v1`, `${baseUrl}/api/v1/`]) {
      await transferClient({ ...credentials, baseUrl: base }).createTransfer(request);
    }
    expect(received.map(({ url }) => url)).toEqual(Array(2).fill('/api/v1/transactions/transfer'));
  });

  test('gives the response the type of a schema', async () => {
    const { client } = await startService([[200, { data: { id: 'tr-1' } }]]);
    const answer = await client.createTransfer(request, { schema: z.object({ data: z.object({ id: z.string() }) }) });
    expect(answer.data.id).toBe('tr-1');
  });

  test('reports the transfer as accepted when the response does not fit the schema', async () => {
    const { client, received } = await startService([[200, { data: {} }]]);
    const schema = z.object({ data: z.object({ id: z.string() }) });
    expect(await catchError(client.createTransfer(request, { schema }))).toMatchObject({
      code: 'UNREADABLE_ANSWER',
      status: 200,
      message:
        'The transfer was accepted, but the response does not fit the schema, at data.id: query it by its externalId, payout-1.',
    });
    expect(received).toHaveLength(1);
  });

  test('reports the transfer as accepted when the response is not JSON', async () => {
    const { client } = await startService([[200, '<html>']]);
    expect(await catchError(client.createTransfer({ callbackUrl: 'x' }))).toMatchObject({
      code: 'UNREADABLE_ANSWER',
      message: 'The transfer was accepted, but the response is not JSON: query it.',
    });
  });

  test.each<[string, Reply, number | undefined]>([
    ['the connection breaks', hangUp, undefined],
    ['the service answers 500', refusal(500, 'Oops'), 500],
    ['the service answers 503', [503, 'busy'], 503],
    ['the service redirects', [307, '', { Location: 'http://127.0.0.1:9/' }], 307],
    ['somebody on the way gives up', refusal(408, 'Timeout'), 408],
    ['there seems to be such a transfer', refusal(409, 'Conflict'), 409],
    ['the status is nobody’s', refusal(499, 'Closed'), 499],
  ])('is sent once, and its outcome unknown, when %s', async (_title, reply, status) => {
    const { client, received } = await startService([reply]);
    const error = await catchError(client.createTransfer(request));
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', status });
    expect(error.message).toContain('query it by its externalId, payout-1, before anything else');
    expect(received).toHaveLength(1);
  });

  test('does not wait longer than timeoutMs, and its outcome is unknown then', async () => {
    const { client } = await startService([() => undefined], { timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.objectContaining({ name: 'TimeoutError' }) as unknown,
    });
  });

  test('reads the body of the response within timeoutMs, too', async () => {
    const { client } = await startService([(response) => void response.writeHead(200).write('{')], { timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  });

  test('is not sent at all under a signal that has aborted, and its outcome unknown when it aborts later', async () => {
    const controller = new AbortController();
    const { client, received } = await startService([
      () => {
        controller.abort(new Error('enough'));
      },
    ]);
    expect(await catchError(client.createTransfer(request, { signal: controller.signal }))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
    });
    await expect(client.createTransfer(request, { signal: controller.signal })).rejects.toThrow('enough');
    expect(received).toHaveLength(1);
  });

  test.each([
    [404, ['api_key_missing']],
    [
      400,
      ['api_key_invalid', 'api_secret_missing', 'api_secret_wrong', 'key_revoked', 'merchant_inactive', 'key_expired'],
    ],
    [422, []],
    [421, []], // After which fetch would send it again, could it.
  ])('a %i is a refusal that may mean %j', async (status, authenticationFaults) => {
    const { client, received } = await startService([refusal(status, 'No.')]);
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'REFUSED',
      status,
      authenticationFaults,
      body: { error: true, statusCode: status, message: 'No.', data: null },
      message: `The service refused: ${status}, «No.».`,
    });
    expect(received).toHaveLength(1);
  });

  test.each([
    '{"error":true}',
    '{"error":true,"statusCode":"400","message":"x","data":null}',
    '{"error":true,"statusCode":400,"message":"x","data":{}}',
    'null',
    '[]',
    'Bad Request',
  ])('a refusal of another shape, %s, has no body', async (body) => {
    const { client } = await startService([[400, body]]);
    const error = await catchError(client.createTransfer(request));
    expect(error).toMatchObject({ code: 'REFUSED', body: undefined, message: 'The service refused: 400.' });
  });

  test('a schema that throws, or is asynchronous, does not hide that the transfer was accepted', async () => {
    const { client } = await startService([[201, {}]]);
    const broken = z.unknown().transform((): never => {
      throw new RangeError('broken');
    });
    const asynchronous = z.unknown().refine(() => Promise.resolve(true));
    for (const schema of [broken, asynchronous]) {
      const error = await catchError(client.createTransfer(request, { schema }));
      expect(error).toMatchObject({ code: 'UNREADABLE_ANSWER', cause: expect.any(Error) as unknown });
      expect(error.message).toMatch(/^The transfer was accepted, but the schema threw: query it/);
    }
  });

  const circular: Record<string, unknown> = { callbackUrl: 'x' };
  circular.self = circular;
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'https://merchant.example/callbacks'],
    ['a list', [{ callbackUrl: 'x' }]],
    ['an object without callbackUrl', { amount: 5 }],
    ['an object whose callbackUrl is no text', { callbackUrl: new Date(0).getTime() }],
    ['an object that contains itself', circular],
    ['an object with a bigint', { callbackUrl: 'x', amount: 5n }],
    ['an object whose JSON lacks the callbackUrl', { callbackUrl: 'x', toJSON: () => ({ amount: 5 }) }],
  ])('a request that is %s rejects with INVALID_ARGUMENT and is not sent', async (_title, given) => {
    const { client, received } = await startService([[201, {}]]);
    expect(await catchError(client.createTransfer(given as never))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(received).toEqual([]);
  });

  test.each([
    ['2026/11/0001', '2026/11/0001'],
    ['a#1', 'a#1'],
    ['100%', '100%'],
    ['..', '..'],
    ['nothing', ''],
    ['256 characters', 'x'.repeat(256)],
  ])(
    'a transfer with an externalId of %s, by which it could not be queried, is not created',
    async (_title, externalId) => {
      const { client, received } = await startService([[201, {}]]);
      expect(await catchError(client.createTransfer({ ...request, externalId }))).toMatchObject({ code: 'INVALID_ID' });
      expect(received).toEqual([]);
    },
  );

  test('null in place of the options is as none', async () => {
    const { client } = await startService([[200, { data: transaction }]]);
    await client.createTransfer(request, null as never);
    await client.getTransaction('tr-1', null as never);
  });

  test('the secret does not come back from a server that does not speak HTTP, and repeats what it got', async () => {
    const server = createServer((socket) => {
      socket.on('data', (bytes) => socket.end(Buffer.concat([Buffer.from('nonsense '), bytes])));
    }).listen(0, '127.0.0.1');
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => { resolve(); }))); // prettier-ignore
    await once(server, 'listening');
    const client = transferClient({
      ...credentials,
      baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.any(Error) as unknown,
    });
  });

  test.each<[string, unknown, object]>([
    ['an error with a cause', new TypeError('fetch failed', { cause: new Error('no route') }), { message: 'no route' }],
    [
      'an error without a message',
      Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
      { message: 'ECONNREFUSED' },
    ],
    ['the secret itself', new Error(`${credentials.apiSecret} is wrong`), { message: '[redacted] is wrong' }],
    ['a text', 'no', { message: 'no' }],
    ['nothing', undefined, { message: 'undefined' }],
  ])('a fetch that rejects with %s is an outcome unknown', async (_title, reason, cause) => {
    const fetch = vi.fn<typeof globalThis.fetch>().mockRejectedValue(reason);
    const client = transferClient({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch });
    expect(await catchError(client.createTransfer(request))).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause });
  });

  test('a fetch that heeds no signal does not hold up anybody', async () => {
    const fetch: typeof globalThis.fetch = () => new Promise(() => undefined);
    const client = transferClient({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch, timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.objectContaining({ name: 'TimeoutError' }) as unknown,
    });
  });

  test('a secret that the service repeats is redacted', async () => {
    const { client } = await startService([refusal(400, `Wrong secret ${credentials.apiSecret} for key-1`)]);
    const error = await catchError(client.createTransfer(request));
    expect(error.body?.message).toBe('Wrong secret [redacted] for [redacted]');
  });
});

describe('getTransaction', () => {
  test('reads a transaction with the documented headers, under data or at the top', async () => {
    const { client, received } = await startService([
      [200, { error: false, data: transaction }],
      [200, transaction],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(await client.getTransaction('payout 1/é'.replace('/', '-'))).toEqual(transaction);
    expect(received.map(({ method, url, headers }) => [method, url, headers['x-api-secret']])).toEqual([
      ['GET', '/transactions/tr-1', credentials.apiSecret],
      ['GET', '/transactions/payout%201-%C3%A9', credentials.apiSecret],
    ]);
  });

  test.each([
    '',
    '.',
    '..',
    '../admin',
    'a/b',
    'a\\b',
    'a?b',
    'a#b',
    '%2e%2e',
    'a%2Fb',
    'a\nb',
    'a\u202Eb',
    '\uD800',
    'x'.repeat(256),
  ])('an id such as %j never gets into the path', async (id) => {
    const { client, received } = await startService([[200, transaction]]);
    expect(await catchError(client.getTransaction(id))).toMatchObject({ code: 'INVALID_ID' });
    expect(received).toEqual([]);
  });

  test('an id that is not a string is refused', async () => {
    const { client } = await startService([[200, transaction]]);
    expect(await catchError(client.getTransaction(5 as unknown as string))).toMatchObject({ code: 'INVALID_ID' });
  });

  test('`readTransaction` finds it where else it may be', async () => {
    const { client } = await startService([[200, { result: [transaction] }]], {
      readTransaction: (body) => (body as { result: Transaction[] }).result[0],
    });
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
  });

  test.each<[unknown, string]>([
    [{ data: { id: 'tr-1', status: 'SUCCESS' } }, 'No transaction with id, externalId and status was found'],
    ['not json', 'No transaction with id, externalId and status was found'],
    [null, 'No transaction with id, externalId and status was found'],
  ])('a response such as %j has no transaction in it, and the error tells so', async (body, message) => {
    const { client } = await startService([[200, body === 'not json' ? 'not json' : JSON.stringify(body)]]);
    const error = await catchError(client.getTransaction('tr-1'));
    expect(error).toMatchObject({ code: 'UNREADABLE_ANSWER', status: 200 });
    expect(error.message).toContain(message);
  });

  test('a `readTransaction` that throws makes the response unreadable', async () => {
    const cause = new Error('no such field');
    const { client } = await startService([[200, {}]], {
      readTransaction: () => {
        throw cause;
      },
    });
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({ code: 'UNREADABLE_ANSWER', cause });
  });

  test.each<[string, Reply]>([
    ['breaks the connection', hangUp],
    ['answers 500', refusal(500, 'Oops')],
    ['answers 429', [429, '']],
  ])('retries a query while the service %s', async (_title, reply) => {
    const { client, received } = await startService([reply, reply, [200, transaction]]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(received).toHaveLength(3);
  });

  test('gives up after the third time', async () => {
    const { client, received } = await startService([hangUp, refusal(502, 'Bad gateway')]);
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({
      code: 'UNAVAILABLE',
      status: 502,
      message: 'The service responded with 502, «Bad gateway». The transfer could not be read.',
    });
    expect(received).toHaveLength(3);
  });

  test('a refusal is final at once', async () => {
    const { client, received } = await startService([refusal(404, 'Not found')]);
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({ code: 'REFUSED', status: 404 });
    expect(received).toHaveLength(1);
  });

  test('waits as long as Retry-After asks', async () => {
    const at: number[] = [];
    const { client } = await startService(() => {
      at.push(performance.now());
      return at.length === 1 ? [503, '', { 'Retry-After': '1' }] : [200, transaction];
    });
    await client.getTransaction('tr-1');
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(999);
  });

  test.each([
    ['60', 60_000],
    [new Date(Date.now() + 3_600_000).toUTCString(), 3_600_000],
  ])('rejects without waiting as long as Retry-After: %s', async (header, ms) => {
    const { client, received } = await startService([[503, '', { 'Retry-After': header }]]);
    const error = await catchError(client.getTransaction('tr-1'));
    expect(received).toHaveLength(1);
    expect(error.retryAfterMs).toBeGreaterThan(ms / 2);
    expect(error.retryAfterMs).toBeLessThanOrEqual(ms);
  });

  test('a Retry-After that is in the past or unreadable is none', async () => {
    const { client, received } = await startService([
      [503, '', { 'Retry-After': 'Thu, 01 Jan 1970 00:00:00 GMT' }],
      [503, '', { 'Retry-After': 'soon' }],
      [200, transaction],
    ]);
    await client.getTransaction('tr-1');
    expect(received).toHaveLength(3);
  });

  test('a signal ends it, before, during and between the calls', async () => {
    const reason = new Error('enough');
    const { client, received } = await startService([hangUp]);
    await expect(client.getTransaction('tr-1', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(received).toHaveLength(0);

    const during = new AbortController();
    const silent = await startService([
      () => {
        during.abort(reason);
      },
    ]);
    await expect(silent.client.getTransaction('tr-1', { signal: during.signal })).rejects.toBe(reason);
    expect(silent.received).toHaveLength(1);

    const between = new AbortController();
    const busy = await startService([[503, '', { 'Retry-After': '9' }]]);
    const call = busy.client.getTransaction('tr-1', { signal: between.signal });
    await vi.waitFor(() => {
      expect(busy.received).toHaveLength(1);
    });
    setTimeout(() => {
      between.abort(reason);
    }, 50);
    await expect(call).rejects.toBe(reason);
    expect(busy.received).toHaveLength(1);
  });

  test('a service that is not there is unavailable', async () => {
    const nobody = createServer().listen(0, '127.0.0.1');
    await once(nobody, 'listening');
    const { port } = nobody.address() as AddressInfo;
    nobody.close();
    await once(nobody, 'close');
    const client = transferClient({ ...credentials, baseUrl: `http://127.0.0.1:${port}` });
    const error = await catchError(client.getTransaction('tr-1'));
    expect(error).toMatchObject({ code: 'UNAVAILABLE', status: undefined, authenticationFaults: [] });
  });

  test('takes a fetch of your own', async () => {
    const own = vi.fn<typeof fetch>(() => Promise.resolve(Response.json(transaction)));
    const client = transferClient({ ...credentials, baseUrl: 'https://service.example', fetch: own });
    await client.getTransaction('tr-1');
    expect(own).toHaveBeenCalledWith('https://service.example/transactions/tr-1', expect.anything());
  });
});

describe('transferClient', () => {
  test('shows nothing of the secret when it is looked at', () => {
    const client = transferClient({ ...credentials, baseUrl: 'https://service.example' });
    expect(inspect(client, { depth: null, showHidden: true })).not.toContain(credentials.apiSecret);
    expect(JSON.stringify(client)).not.toContain(credentials.apiSecret);
  });

  test.each<[object | null, string]>([
    [
      { baseUrl: 'service.example' },
      'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got a string of 15 characters.',
    ],
    [
      { baseUrl: 'ftp://service.example' },
      'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got a string of 21 characters.',
    ],
    [
      { baseUrl: 'https://a:b@service.example' },
      'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got a string of 27 characters.',
    ],
    [
      { baseUrl: 'https://service.example/?a' },
      'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got a string of 26 characters.',
    ],
    [
      { baseUrl: undefined },
      'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got undefined.',
    ],
    [{ apiKey: '' }, 'Expected `apiKey` to be a text of visible ASCII characters, got a string of 0 characters.'],
    [
      { apiSecret: 'with a\nline' },
      'Expected `apiSecret` to be a text of visible ASCII characters, got a string of 11 characters.',
    ],
    [{ apiSecret: undefined }, 'Expected `apiSecret` to be a text of visible ASCII characters, got undefined.'],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` to be a whole number from 1 to 2147483647, got 0.'],
    [{ fetch: 5 }, 'Expected `fetch` to be a function, got 5.'],
    [{ readTransaction: 'data' }, 'Expected `readTransaction` to be a function, got "data".'],
    [
      { secret: 'x' },
      'Unknown option `secret`; known are baseUrl, apiKey, apiSecret, timeoutMs, fetch, readTransaction.',
    ],
    [null, 'Expected `options` to be an object, got null.'],
  ])('refuses the options %j', (changes, message) => {
    const options = changes && { baseUrl: 'https://service.example', ...credentials, ...changes };
    expect(() => transferClient(options as TransferClientOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message }),
    );
  });
});
