import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { catchError, credentials, refusal, request, startService } from './support.js';
import { containing } from '../support/containing.js';

describe('createTransfer', () => {
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

  test('reports the transfer as accepted when the response does not fit the schema', async () => {
    const { client, received } = await startService([[200, { data: {} }]]);
    const schema = z.object({ data: z.object({ id: z.string(), fee: z.number() }) });
    expect(await catchError(client.createTransfer(request, { schema }))).toMatchObject({
      code: 'UNREADABLE_RESPONSE',
      status: 200,
      message: containing(
        'The transfer was accepted, but the response does not fit the schema, at data.id, data.fee: query it by its externalId, payout-1.',
      ),
    });
    expect(received).toHaveLength(1);
  });

  test('reports the transfer as accepted when the response is not JSON', async () => {
    const { client } = await startService([[200, '<html>']]);
    expect(await catchError(client.createTransfer({ callbackUrl: 'x' }))).toMatchObject({
      code: 'UNREADABLE_RESPONSE',
      message: containing('The transfer was accepted, but the response is not JSON: query it.'),
    });
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
    const cases: string[] = [
      '{"error":true}',
      '{"error":true,"statusCode":"400","message":"x","data":null}',
      '{"error":true,"statusCode":400,"message":"x","data":{}}',
      '{"error":true,"statusCode":400,"data":null}',
      '{"error":false,"statusCode":400,"message":"x","data":null}',
      'null',
      '[]',
      'Bad Request',
    ];
    for (const body of cases) {
      const { client } = await startService([[400, body]]);
      const error = await catchError(client.createTransfer(request));
      const message = expect.stringMatching(/^The service at \S+ refused: 400\. See /) as string;
      expect(error, body).toMatchObject({ code: 'REFUSED', body: undefined, message });
    }
  });

  test('a schema that throws, or is asynchronous, does not hide that the transfer was accepted', async () => {
    const { client } = await startService([[201, {}]]);
    const broken = z.unknown().transform((): never => {
      throw new RangeError('broken');
    });
    const asynchronous = z.unknown().refine(() => Promise.resolve(true));
    for (const schema of [broken, asynchronous]) {
      const error = await catchError(client.createTransfer(request, { schema }));
      expect(error).toMatchObject({ code: 'UNREADABLE_RESPONSE', cause: expect.any(Error) as unknown });
      expect(error.message).toMatch(/^The transfer was accepted, but the schema threw: query it/);
    }
  });

  test('the error of a request that JSON cannot express has the reason as its cause', async () => {
    const { client } = await startService([[201, {}]]);
    const error = await catchError(client.createTransfer({ callbackUrl: 'x', amount: 5n }));
    expect(error.cause).toMatchObject({ name: 'TypeError', message: expect.stringContaining('BigInt') as string });
  });

  const circular: Record<string, unknown> = { callbackUrl: 'x' };
  circular.self = circular;
  test('a request that cannot be sent rejects with INVALID_ARGUMENT', async () => {
    const cases: [what: string, given: unknown][] = [
      ['nothing', undefined],
      ['null', null],
      ['a text', 'https://merchant.example/callbacks'],
      ['a list', [{ callbackUrl: 'x' }]],
      ['an object without callbackUrl', { amount: 5 }],
      ['an object whose callbackUrl is no text', { callbackUrl: new Date(0).getTime() }],
      ['an object that contains itself', circular],
      ['an object with a bigint', { callbackUrl: 'x', amount: 5n }],
      ['an object whose JSON lacks the callbackUrl', { callbackUrl: 'x', toJSON: () => ({ amount: 5 }) }],
    ];
    for (const [what, given] of cases) {
      const { client, received } = await startService([[201, {}]]);
      const error = await catchError(client.createTransfer(given as never));
      expect(error, what).toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(received, what).toEqual([]);
    }
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
});
