import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { transferService } from 'transfer-callbacks/client';
import { catchError, credentials, hangUp, refusal, request, startService, type Reply } from './support.js';
import { later } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';

describe('createTransfer', () => {
  test('posts the request as it is given, with the documented headers, and returns the response as parsed', async () => {
    const { client, received } = await startService([[201, { anything: ['at', 'all'] }]]);
    expect(await client.createTransfer(request)).toEqual({ anything: ['at', 'all'] });
    const { apiKey, apiSecret } = credentials;
    const headers = { 'x-api-key': apiKey, 'x-api-secret': apiSecret, 'content-type': 'application/json' };
    expect(received).toMatchObject([{ method: 'POST', url: '/transactions/transfer', headers }]);
    expect(JSON.parse(received[0]?.body ?? '')).toEqual(request);
    expect(received[0]?.headers['content-length']).toBe(String(received[0]?.body.length));
  });

  test('gives the response the type of a schema', async () => {
    const { client } = await startService([[200, { data: { id: 'tr-1' } }]]);
    const response = await client.createTransfer(request, { schema: z.object({ data: z.object({ id: z.string() }) }) });
    expect(response.data.id).toBe('tr-1');
  });

  test.each([
    ['schema', { schema: {} }],
    ['signal', { signal: new AbortController() }],
  ])('sends nothing when its option %s is wrong', async (option, options) => {
    const { client, received } = await startService([[200, '{}']]);
    await expect(client.createTransfer(request, options as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: containing(`Expected \`${option}\` to be`),
    });
    expect(received).toEqual([]);
  });

  test('whatever is wrong with a 2xx, the error tells that the transfer was accepted', async () => {
    const { client, received } = await startService([
      [200, '<html>'],
      [200, { data: {} }],
    ]);
    const misfit = z.object({ data: z.object({ id: z.string(), fee: z.number() }) });
    const broken = z.unknown().transform((): never => {
      throw new RangeError('broken');
    });
    const asynchronous = z.unknown().refine(() => Promise.resolve(true));
    const cases: [why: string, schema?: z.ZodType, cause?: unknown][] = [
      ['the response is not JSON'],
      ['the response does not fit the schema, at data.id, data.fee', misfit],
      ['the schema threw', broken, expect.any(RangeError)],
      ['the schema threw', asynchronous, expect.any(Error)],
    ];
    for (const [why, schema, cause] of cases) {
      expect(await catchError(client.createTransfer(request, { schema }))).toMatchObject({
        ...{ code: 'UNREADABLE_RESPONSE', status: 200, cause },
        message: containing(`The transfer was accepted, but ${why}: query it by its externalId, payout-1.`),
      });
    }
    expect(received).toHaveLength(cases.length);
  });

  const ofKey = ['api_key_invalid', 'api_secret_missing', 'api_secret_wrong'];
  test.each([
    [404, ['api_key_missing']],
    [400, [...ofKey, 'key_revoked', 'merchant_inactive', 'key_expired']],
    [422, []],
    [421, []], // After which fetch would send it again, could it.
  ])('a %i is a refusal that may mean %j', async (status, authenticationFaults) => {
    const { client, received, baseUrl } = await startService([refusal(status, 'No.')]);
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'REFUSED',
      status,
      authenticationFaults,
      body: { error: true, statusCode: status, message: 'No.', data: null },
      message: containing(`The service at ${new URL(baseUrl).origin} refused: ${status}, "No.".`),
    });
    expect(received).toHaveLength(1);
  });

  test('a refusal of another shape has no body', async () => {
    const bodies = [
      '{"error":true,"statusCode":"400","message":"x","data":null}',
      '{"error":true,"statusCode":400,"message":"x","data":{}}',
      '{"error":true,"statusCode":400,"data":null}',
      '{"error":false,"statusCode":400,"message":"x","data":null}',
      'null',
      'Bad Request',
    ];
    const { client } = await startService(bodies.map((body) => [400, body]));
    for (const body of bodies) {
      const error = await catchError(client.createTransfer(request));
      const message = expect.stringMatching(/^The service at \S+ refused: 400\. See /) as string;
      expect(error, body).toMatchObject({ code: 'REFUSED', body: undefined, message });
    }
  });

  test('a request that cannot be sent rejects with INVALID_ARGUMENT', async () => {
    const { client, received } = await startService([[201, {}]]);
    const cause = { name: 'TypeError', message: containing('BigInt') };
    const cases: [what: string, given: unknown, more?: object][] = [
      ['nothing', undefined],
      ['null', null],
      ['an object without callbackUrl', { amount: 5 }],
      ['an object whose callbackUrl is no text', { callbackUrl: 0 }],
      ['an object with a bigint', { callbackUrl: 'x', amount: 5n }, { cause }],
      ['an object whose JSON lacks the callbackUrl', { callbackUrl: 'x', toJSON: () => ({ amount: 5 }) }],
    ];
    for (const [what, given, more] of cases) {
      const error = await catchError(client.createTransfer(given as never));
      expect(error, what).toMatchObject({ code: 'INVALID_ARGUMENT', ...more });
    }
    expect(received).toEqual([]);
  });

  test.each(['2026/11/0001', ''])(
    'a transfer with the externalId %j, by which it could not be queried, is not created',
    async (externalId) => {
      const { client, received } = await startService([[201, {}]]);
      expect(await catchError(client.createTransfer({ ...request, externalId }))).toMatchObject({ code: 'INVALID_ID' });
      expect(received).toEqual([]);
    },
  );

  test('a transfer without an externalId, or with a number, is created, and may be queried', async () => {
    const { client } = await startService([[201, {}], [201, {}], hangUp]);
    for (const externalId of [undefined, 5]) {
      expect(await client.createTransfer({ ...request, externalId })).toEqual({});
    }
    const error = await catchError(client.createTransfer({ ...request, externalId: 5 }));
    expect(error.message).toContain('The transfer may have been created: query it, before anything else.');
  });
});

describe('the outcome of createTransfer', () => {
  test.each<[string, Reply, number | undefined]>([
    ['the connection breaks', hangUp, undefined],
    ['the service responds 500', refusal(500, 'Oops'), 500],
    ['the service gives a choice', [300, '[]'], 300],
    ['the service redirects', [307, '', { Location: 'http://127.0.0.1:9/' }], 307],
    ['a proxy on the way gives up', refusal(408, 'Timeout'), 408],
    ['there seems to be such a transfer', refusal(409, 'Conflict'), 409],
    ['the status is nobody’s', refusal(499, 'Closed'), 499],
  ])('is sent once, and its outcome unknown, when %s', async (_title, reply, status) => {
    const { client, received } = await startService([reply]);
    const error = await catchError(client.createTransfer(request));
    expect(error).toMatchObject({ code: 'OUTCOME_UNKNOWN', status });
    expect(error.message).toContain('query it by its externalId, payout-1, before anything else');
    expect(received).toHaveLength(1);
  });

  test('reads the body of the response within timeoutMs, closes the connection, and its outcome is unknown then', async () => {
    const closed = later();
    const respond = (response: ServerResponse): void => {
      response.on('close', closed.resolve).writeHead(200).write('{');
    };
    const { client } = await startService([respond], { timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.objectContaining({ name: 'TimeoutError' }) as unknown,
    });
    await closed.promise;
  });

  test.each(['shutdown', null])(
    'is of an unknown outcome when it is aborted with %o, and not sent at all after that',
    async (reason) => {
      const controller = new AbortController();
      const { signal } = controller;
      const { client, received } = await startService([
        () => {
          controller.abort(reason);
        },
      ]);
      expect(await catchError(client.createTransfer(request, { signal }))).toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        message: containing(`: ${String(reason)}. The transfer may have been created`),
      });
      await expect(client.createTransfer(request, { signal })).rejects.toBe(reason);
      expect(received).toHaveLength(1);
    },
  );

  const unnamed = Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' });
  const far = { name: 'RangeError', message: 'too far', code: 'E_FAR' };
  test.each<[string, unknown, object]>([
    ['an error with a cause', new TypeError('fetch failed', { cause: new Error('no route') }), { message: 'no route' }],
    ['an error without a message', unnamed, { message: 'ECONNREFUSED' }],
    ['an error of another class', Object.assign(new RangeError(), far), far],
    ['the secret itself', new Error(`${credentials.apiSecret} is wrong`), { message: '[redacted] is wrong' }],
    ['a text', 'no', { message: 'no' }],
    ['nothing', undefined, { message: 'undefined' }],
  ])('a fetch that rejects with %s is an outcome unknown', async (_title, reason, cause) => {
    const fetch = vi.fn<typeof globalThis.fetch>().mockRejectedValue(reason);
    const client = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch });
    expect(await catchError(client.createTransfer(request))).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause });
  });

  test('a fetch that resolves with a response of no server is an outcome unknown', async () => {
    const fetch = () => Promise.resolve(Response.error());
    const client = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch });
    expect(await catchError(client.createTransfer(request))).toMatchObject({ code: 'OUTCOME_UNKNOWN', status: 0 });
  });

  test('a fetch that ignores its signal holds nobody up', async () => {
    const fetch: typeof globalThis.fetch = () => new Promise(() => undefined);
    const client = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch, timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.objectContaining({ name: 'TimeoutError' }) as unknown,
    });
  });
});
