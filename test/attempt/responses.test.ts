import type { ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { attemptCallback, findReason, isAcknowledgement } from '../../src/attempt/attempt.js';
import { startMerchant } from '../sandbox/support.js';

test('only a 2xx acknowledges a callback', () => {
  const statuses = [99, 199, 200, 204, 299, 300, 307, 404, 503];
  expect(statuses.filter((status) => isAcknowledgement({ status, body: '' }))).toEqual([200, 204, 299]);
  expect(isAcknowledgement({ error: 'aborted' })).toBe(false);
});

test('the reason is the message or the outcome in the body', () => {
  const cases: [body: string, reason: string | undefined][] = [
    ['{"message":"busy","outcome":"in_progress"}', 'busy'],
    ['{"message":5,"outcome":"processed"}', 'processed'],
    ['{}', undefined],
    ['null', undefined],
    ['<html>', undefined],
  ];
  for (const [body, reason] of cases) expect(findReason({ status: 200, body }), body).toBe(reason);
  expect(findReason({ error: 'aborted' })).toBeUndefined();
});

test('an attempt ends without a response after timeoutMs, or when its signal aborts', async () => {
  const controller = new AbortController();
  const responses: ServerResponse[] = [];
  const { url } = await startMerchant(({ body }, _count, response) => {
    responses.push(response);
    if (body === '{"aborts":true}') controller.abort();
  });
  // On a busy machine it may end before the merchant has it.
  expect(await attemptCallback(url, '{}', { timeoutMs: 100 })).toEqual({ error: 'no response within 100 ms' });
  const { signal } = controller;
  expect(await attemptCallback(url, '{"aborts":true}', { signal, timeoutMs: 60_000 })).toEqual({ error: 'aborted' });
  await vi.waitUntil(() => responses.every(({ destroyed }) => destroyed));
});

test('an attempt that loses the response ends without it, although the merchant has responded', async () => {
  const { url, received } = await startMerchant();
  expect(await attemptCallback(url, '{}', { dropResponse: true })).toEqual({ error: 'response lost' });
  expect(received).toHaveLength(1);
});

test('a body is sent as a whole, or in pieces that make up the same body', async () => {
  const { url, received } = await startMerchant();
  const body = Array.from({ length: 100 }, (_, index) => `${index} `).join('');
  expect(await attemptCallback(url, body)).toMatchObject({ status: 200 });
  expect(await attemptCallback(url, body, { pieces: true })).toMatchObject({ status: 200 });
  expect(received.map((each) => each.body)).toEqual([body, body]);
  expect(received.map(({ pieces }) => pieces > 1)).toEqual([false, true]);
});

test('of a long response the first 4 096 bytes are kept', async () => {
  const { url } = await startMerchant((_received, _count, response) => {
    response.writeHead(500, { 'Retry-After': '7' });
    response.write('a'.repeat(4_000), () => response.end('b'.repeat(300_000)));
  });
  const body = 'a'.repeat(4_000) + 'b'.repeat(96);
  expect(await attemptCallback(url, '{}')).toMatchObject({ status: 500, body, headers: { 'retry-after': '7' } });
});
