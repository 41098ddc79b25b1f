import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { transferCallbackSchema } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import type { TransferServiceOptions } from '../../src/client/service/transfer.js';
import { later } from '../core/support.js';
import { catchError, credentials, refusal, request, startService, transaction } from './support.js';
import { containing } from '../support/helpers/containing.js';

const mebibyte = 1_048_576;

afterEach(() => {
  vi.restoreAllMocks();
});

describe('transferService', () => {
  test('null in place of the options is as none', async () => {
    const { client } = await startService([[200, { data: transaction }]]);
    await client.createTransfer(request, null as never);
    await client.getTransaction('tr-1', null as never);
  });

  test('a secret that the service repeats is redacted', async () => {
    const { client } = await startService([refusal(400, `Wrong secret ${credentials.apiSecret} for key-1`)]);
    const error = await catchError(client.createTransfer(request));
    expect(error.body?.message).toBe('Wrong secret [redacted] for [redacted]');
  });

  test('shows nothing of the secret when it is looked at', () => {
    const client = transferService({ ...credentials, baseUrl: 'https://service.example' });
    expect(inspect(client, { depth: null, showHidden: true })).not.toContain(credentials.apiSecret);
    expect(JSON.stringify(client)).not.toContain(credentials.apiSecret);
  });

  const aUrl = 'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got a string of';
  const visible = 'to be a string of visible ASCII characters, got';
  test.each<[object | null, string]>([
    [{ baseUrl: 'service.example' }, `${aUrl} 15 characters.`],
    [{ baseUrl: 'ftp://service.example' }, `${aUrl} 21 characters.`],
    [{ baseUrl: 'https://a:b@service.example' }, `${aUrl} 27 characters.`],
    [{ baseUrl: 'https://service.example/?a' }, `${aUrl} 26 characters.`],
    [{ apiKey: '' }, `Expected \`apiKey\` ${visible} an empty string. Is its environment variable set?`],
    [{ apiSecret: 'with a\nline' }, `Expected \`apiSecret\` ${visible} a string of 11 characters.`],
    [{ apiSecret: undefined }, `Expected \`apiSecret\` ${visible} undefined. Is its`],
    [{ timeoutMs: 0 }, 'Expected `timeoutMs` to be a whole number from 1 to 2147483647, got 0.'],
    [{ fetch: 5 }, 'Expected `fetch` to be a function, got 5. Write `fetch: globalThis.fetch`.'],
    [{ readTransaction: 'data' }, 'Expected `readTransaction` to be a function, got "data".'],
    [null, 'Expected `options` to be an object, got null.'],
  ])('refuses the options %j', (changes, message) => {
    const options = changes && { baseUrl: 'https://service.example', ...credentials, ...changes };
    expect(() => transferService(options as TransferServiceOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
    );
  });

  test('with a payload and no key it is not asked, and with one key it needs all three', () => {
    const payload = transferCallbackSchema;
    const service = transferService({ payload });
    expect([service.ask, service.makeConfirm]).toEqual([undefined, undefined]);
    const refused: [object, string][] = [
      [{}, 'Expected `baseUrl` to be given with `apiKey` and `apiSecret`, unless the service is not asked: then leave'],
      [{ payload: undefined }, 'Expected `payload` to be a schema'],
      ...['baseUrl', 'apiKey', 'apiSecret'].map((key): [object, string] => [
        { payload, [key]: undefined },
        'Expected `baseUrl` to be an http or https URL without credentials, query or fragment, got undefined.',
      ]),
      [{ payload, baseUrl: 'https://service.example' }, 'Expected `apiKey` to be a string of visible ASCII characters'],
    ];
    for (const [options, message] of refused) {
      expect(() => transferService(options as never), message).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }),
      );
    }
  });
});

describe('a long response', () => {
  test('that never ends is read up to 1 MiB, and the connection is closed', async () => {
    let sent = 0;
    function* blanks(): Generator<Buffer> {
      for (; ; sent += 65_536) yield Buffer.alloc(65_536, ' ');
    }
    const closed = later();
    const { client, received } = await startService([
      (response) => Readable.from(blanks()).pipe(response.once('close', closed.resolve)),
    ]);
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({
      code: 'UNREADABLE_RESPONSE',
      status: 200,
      message: containing('The response is longer than 1 MiB.'),
    });
    await closed.promise;
    expect(received).toHaveLength(1);
    expect(sent).toBeLessThan(32 * mebibyte); // What the sockets buffer.
  });

  test('is measured after it was decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * mebibyte, ' '));
    const { client } = await startService([
      (response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb),
    ]);
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({
      code: 'UNREADABLE_RESPONSE',
      message: containing('The response is longer than 1 MiB.'),
    });
    expect(await catchError(client.createTransfer(request))).toMatchObject({
      code: 'UNREADABLE_RESPONSE',
      message: containing(
        'The transfer was accepted, but the response is longer than 1 MiB: query it by its externalId, payout-1.',
      ),
    });
  });

  test('in any chunks is read as a whole, even if a character is cut', async () => {
    const text = Buffer.from(JSON.stringify({ ...transaction, provider: 'é' }));
    const middle = text.indexOf('é') + 1;
    const chunks = [text.subarray(0, middle), text.subarray(middle)];
    const fetch = () => Promise.resolve(new Response(ReadableStream.from(chunks)));
    const client = transferService({ ...credentials, baseUrl: 'https://service.example', fetch });
    expect(await client.getTransaction('tr-1')).toEqual({ ...transaction, provider: 'é' });
  });

  test('of exactly 1 MiB is read', async () => {
    const text = JSON.stringify(transaction).padEnd(mebibyte);
    const { client } = await startService([
      [200, text],
      [200, `${text} `],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({ code: 'UNREADABLE_RESPONSE' });
  });

  test('is judged by its status', async () => {
    const { client } = await startService([[400, ' '.repeat(2 * mebibyte)]]);
    const error = await catchError(client.createTransfer(request));
    expect(error).toMatchObject({ code: 'REFUSED', status: 400, body: undefined });
  });
});

test('a Retry-After may have blanks around it, and is ignored if it is no whole seconds and no date', async () => {
  const past = 'Thu, 01 Jan 1970 00:00:00 GMT';
  const cases: [header: string, ms?: number][] = [['60 ', 60_000], [past, 0], ['-5'], ['1.5'], ['soon'], ['']];
  const { client } = await startService(cases.map(([header]) => [429, '', { 'Retry-After': header }]));
  for (const [header, ms] of cases) {
    const { retryAfterMs } = await catchError(client.createTransfer(request));
    expect(retryAfterMs, header).toBe(ms);
  }
});

describe('a request that fetch rejects', () => {
  test('that a proxy refuses with 407 rejects with an error that names 407', async () => {
    const { client } = await startService([[407, '']]);
    const error = await catchError(client.createTransfer(request));
    expect(error.code).toBe('OUTCOME_UNKNOWN');
    expect(String(error.cause)).toContain('407');
  });

  test('has the reason of the cause in its message', async () => {
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('No proxy today.') }));
    const client = transferService({ ...credentials, baseUrl: 'https://service.example', fetch });
    const { message } = await catchError(client.createTransfer(request));
    expect(message).toContain('No response came from https://service.example: No proxy today. The transfer may');
  });

  test('is not repeated for a port that fetch blocks, and nothing was sent', async () => {
    const fetch = vi.fn(globalThis.fetch);
    const client = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:6000', fetch });
    for (const call of [client.getTransaction('tr-1'), client.createTransfer(request)]) {
      expect(await catchError(call)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: 'fetch blocks the port of this address. Nothing was sent.',
      });
    }
    expect(fetch).toHaveBeenCalledTimes(2);
  });
});

test('a global fetch that is replaced after the client was made is used', async () => {
  const client = transferService({ ...credentials, baseUrl: 'https://service.example' });
  vi.spyOn(globalThis, 'fetch').mockImplementation(() => Promise.resolve(Response.json(transaction)));
  expect(await client.getTransaction('tr-1')).toEqual(transaction);
});

test('an error as JSON has its code and message, and nothing of its cause', async () => {
  const { client, baseUrl } = await startService([[503, '', { 'Retry-After': '60' }]]);
  expect(JSON.parse(JSON.stringify(await catchError(client.getTransaction('tr-1'))))).toEqual({
    name: 'TransferClientError',
    code: 'UNAVAILABLE',
    message: containing(
      `The service at ${new URL(baseUrl).origin} responded with 503. The transfer could not be read.`,
    ),
    status: 503,
    retryAfterMs: 60_000,
  });
});
