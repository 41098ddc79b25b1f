import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferClient, TransferClientError, type TransferClientOptions } from 'transfer-callbacks/client';
import { credentials, startService, type Service } from './support.js';

const { data: transaction } = transferSucceeded({ id: 'tr-1', externalId: 'payout-1' });
const request = { callbackUrl: 'https://merchant.example/callbacks', externalId: 'payout-1' };
const closing: (() => unknown)[] = [];
const mebibyte = 1_048_576;

afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.splice(0)) await close();
});

async function start(
  replies: Parameters<typeof startService>[0],
  options: Partial<TransferClientOptions> = {},
): Promise<Service> {
  const service = await startService(replies, options);
  closing.push(service.close);
  return service;
}

async function errorOf(call: Promise<unknown>): Promise<TransferClientError> {
  const error = await call.then(
    () => expect.fail('it did not reject'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TransferClientError);
  return error as TransferClientError;
}

describe('a long response', () => {
  test('that never ends is read up to 1 MiB, and the connection is closed', async () => {
    let sent = 0;
    let closed = false;
    const { client, received } = await start([
      (response: ServerResponse) => {
        response.writeHead(200);
        response.once('close', () => {
          closed = true;
        });
        const write = (): void => {
          while (!response.destroyed) {
            sent += 65_536;
            if (!response.write(Buffer.alloc(65_536, ' '))) break;
          }
        };
        response.on('drain', write);
        write();
      },
    ]);
    expect(await errorOf(client.getTransaction('tr-1'))).toMatchObject({
      code: 'UNREADABLE_ANSWER',
      status: 200,
      message: 'The response is longer than 1 MiB.',
    });
    await vi.waitUntil(() => closed);
    expect(received).toHaveLength(1);
    expect(sent).toBeLessThan(32 * mebibyte); // What the sockets buffer.
  });

  test('is measured after it was decompressed', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * mebibyte, ' '));
    const { client } = await start([(response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb)]);
    expect(await errorOf(client.getTransaction('tr-1'))).toMatchObject({
      code: 'UNREADABLE_ANSWER',
      message: 'The response is longer than 1 MiB.',
    });
    expect(await errorOf(client.createTransfer(request))).toMatchObject({
      code: 'UNREADABLE_ANSWER',
      message:
        'The transfer was accepted, but the response is longer than 1 MiB: query it by its externalId, payout-1.',
    });
  });

  test('of exactly 1 MiB is read, in any chunks', async () => {
    const text = Buffer.from(JSON.stringify({ ...transaction, provider: 'é' }));
    const padded = Buffer.concat([text, Buffer.alloc(mebibyte - text.length, ' ')]);
    const { client } = await start([
      (response) => {
        const middle = text.indexOf('é') + 1;
        response.writeHead(200).write(padded.subarray(0, middle), () => {
          response.end(padded.subarray(middle));
        });
      },
      [200, Buffer.concat([padded, Buffer.from(' ')]).toString()],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual({ ...transaction, provider: 'é' });
    expect(await errorOf(client.getTransaction('tr-1'))).toMatchObject({ code: 'UNREADABLE_ANSWER' });
  });

  test.each([
    [500, 'OUTCOME_UNKNOWN'],
    [400, 'REFUSED'],
  ])('with status %i is judged by its status', async (status, code) => {
    const { client } = await start([[status, ' '.repeat(2 * mebibyte)]]);
    expect(await errorOf(client.createTransfer(request))).toMatchObject({ code, status, body: undefined });
  });
});

describe('Retry-After', () => {
  test('may have blanks around it', async () => {
    const { client } = await start([[503, '', { 'Retry-After': '60 ' }]]);
    expect(await errorOf(client.getTransaction('tr-1'))).toMatchObject({ retryAfterMs: 60_000 });
  });

  test.each(['-5', '1.5', 'soon', ''])('is ignored if it is %j, no whole seconds and no date', async (header) => {
    const { client } = await start([[429, '', { 'Retry-After': header }]]);
    const { retryAfterMs } = await errorOf(client.createTransfer(request));
    expect(retryAfterMs).toBeUndefined();
  });
});

describe('a request that fetch rejects', () => {
  test('says that a proxy may have responded with 407, which fetch does not return', async () => {
    const { client } = await start([[407, '']]);
    const error = await errorOf(client.createTransfer(request));
    expect(error.code).toBe('OUTCOME_UNKNOWN');
    expect(String(error.cause)).toContain('407');
  });

  test('is not repeated for a port that fetch blocks, and nothing was sent', async () => {
    const fetch = vi.fn(globalThis.fetch);
    const client = transferClient({ ...credentials, baseUrl: 'http://127.0.0.1:6000', fetch });
    for (const call of [client.getTransaction('tr-1'), client.createTransfer(request)]) {
      expect(await errorOf(call)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: 'fetch blocks the port of `baseUrl`. Nothing was sent.',
      });
    }
    expect(fetch).toHaveBeenCalledTimes(2);
  });
});

test('a global fetch that is replaced after the client was made is used', async () => {
  const client = transferClient({ ...credentials, baseUrl: 'https://service.example' });
  vi.spyOn(globalThis, 'fetch').mockImplementation(() => Promise.resolve(Response.json(transaction)));
  expect(await client.getTransaction('tr-1')).toEqual(transaction);
});

test('an error as JSON has its code and message, and nothing of its cause', async () => {
  const { client } = await start([[503, '', { 'Retry-After': '60' }]]);
  expect(JSON.parse(JSON.stringify(await errorOf(client.getTransaction('tr-1'))))).toEqual({
    name: 'TransferClientError',
    code: 'UNAVAILABLE',
    message: 'The service responded with 503. The transfer could not be read.',
    status: 503,
    retryAfterMs: 60_000,
  });
});
