import { expect, test } from 'vitest';
import { readTransfers, type ReadOptions, type TransferReading } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { refusal, startQueries } from './support.js';
import { containing } from '../support/containing.js';

test('readTransfers reports each transfer as final, open, unknown or failed', async () => {
  const [success, failure] = [transferSucceeded({ id: 'paid' }).data, transferFailed({ id: 'failed' }).data];
  const open = { ...success, id: 'open', status: 'PENDING' };
  const { client, received } = await startQueries((id) => {
    const found = [success, failure, open].find((transaction) => transaction.id === id);
    if (id === 'broken') return [200, '<html>'];
    return found === undefined ? refusal(404, 'Unknown') : [200, { data: found }];
  });
  const readings: TransferReading[] = [];
  const report = await readTransfers({
    client,
    ids: ['paid', 'failed', 'open', 'unheard-of', 'broken', 'a/b'],
    concurrency: 1,
    onProgress: (reading) => readings.push(reading),
  });
  expect(readings).toMatchObject([
    { id: 'paid', result: 'final', event: 'transfer.success', transaction: success },
    { id: 'failed', result: 'final', event: 'transfer.failed', transaction: failure },
    { id: 'open', result: 'open', transaction: open },
    { id: 'unheard-of', result: 'unknown', error: { code: 'REFUSED', status: 404 } },
    { id: 'broken', result: 'failed', error: { code: 'UNREADABLE_RESPONSE' } },
    { id: 'a/b', result: 'failed', error: { code: 'INVALID_ID' } },
  ]);
  expect(report).toMatchObject({ final: 2, open: 1, unknown: 1, failed: 2, unread: 0, queries: 6, cursor: 'a/b' });
  expect(report.stopped).toBeUndefined();
  expect(received.every(({ method }) => method === 'GET')).toBe(true);
});

test('readTransfers ends with the signal, and reports what was not read', async () => {
  const controller = new AbortController();
  const { client } = await startQueries(() => () => {
    controller.abort();
  });
  const report = await readTransfers({
    client,
    ids: ['a', 'b', 'c'],
    signal: controller.signal,
    concurrency: 1,
    onProgress: () => undefined,
  });
  expect(report).toMatchObject({ unread: 1, queries: 1, stopped: 'aborted', cursor: undefined });
});

test('options of readTransfers that do not fit are refused, and the error names them', async () => {
  const cases: [changes: object, message: string][] = [
    [{ client: {} }, 'Expected `client` to be a client, got an object.'],
    [{ ids: 5 }, 'Expected `ids` to be an iterable or an async iterable, got 5.'],
    [{ onProgress: undefined }, 'Expected `onProgress` to be a function, got undefined.'],
    [{ limit: 0 }, 'Expected `limit` to be a whole number from 1 to 2147483647, got 0.'],
    [{ limit: '5' }, 'Expected `limit` to be a whole number from 1 to 2147483647, got "5".'],
    [{ queriesPerSecond: 0.5 }, 'Expected `queriesPerSecond` to be a whole number from 1 to 2147483647, got 0.5.'],
    [
      { receiver: {} },
      'Unknown option `receiver`; known are client, concurrency, queriesPerSecond, limit, signal, ids, onProgress.',
    ],
  ];
  for (const [changes, message] of cases) {
    const client = { getTransaction: () => Promise.reject(new Error('not asked')) };
    const options = { client, ids: [], onProgress: () => undefined, ...changes } as ReadOptions;
    await expect(readTransfers(options), message).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: containing(message),
    });
  }
});
