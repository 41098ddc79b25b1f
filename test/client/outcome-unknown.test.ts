import { describe, expect, test, vi } from 'vitest';
import { transferClient } from 'transfer-callbacks/client';
import { containing } from '../support/containing.js';
import { catchError, credentials, hangUp, refusal, request, startService, type Reply } from './support.js';

describe('createTransfer', () => {
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

  test('reads the body of the response within timeoutMs, and its outcome is unknown then', async () => {
    const { client } = await startService([(response) => void response.writeHead(200).write('{')], { timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.objectContaining({ name: 'TimeoutError' }) as unknown,
    });
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

  test.each<[string, unknown, object]>([
    ['an error with a cause', new TypeError('fetch failed', { cause: new Error('no route') }), { message: 'no route' }],
    [
      'an error without a message',
      Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }),
      { message: 'ECONNREFUSED' },
    ],
    [
      'an error of another class',
      Object.assign(new RangeError('too far'), { code: 'E_FAR' }),
      { name: 'RangeError', message: 'too far', code: 'E_FAR' },
    ],
    ['the secret itself', new Error(`${credentials.apiSecret} is wrong`), { message: '[redacted] is wrong' }],
    ['a text', 'no', { message: 'no' }],
    ['nothing', undefined, { message: 'undefined' }],
  ])('a fetch that rejects with %s is an outcome unknown', async (_title, reason, cause) => {
    const fetch = vi.fn<typeof globalThis.fetch>().mockRejectedValue(reason);
    const client = transferClient({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch });
    expect(await catchError(client.createTransfer(request))).toMatchObject({ code: 'OUTCOME_UNKNOWN', cause });
  });

  test('a fetch that resolves with a response of no server is an outcome unknown', async () => {
    const client = transferClient({
      ...credentials,
      baseUrl: 'http://127.0.0.1:9',
      fetch: () => Promise.resolve(Response.error()),
    });
    expect(await catchError(client.createTransfer(request))).toMatchObject({ code: 'OUTCOME_UNKNOWN', status: 0 });
  });

  test('a fetch that ignores its signal holds nobody up', async () => {
    const fetch: typeof globalThis.fetch = () => new Promise(() => undefined);
    const client = transferClient({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch, timeoutMs: 50 });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      cause: expect.objectContaining({ name: 'TimeoutError' }) as unknown,
    });
  });
});
