// What a response says beside its outcome: the first wrong place, when to come again, and the end of its connection.
import { describe, expect, test } from 'vitest';
import { RetryLater, transferCallbackReceiver } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { httpServers } from '../support/http-servers.js';
import { errorBody } from '../support/post.js';
import { witness } from '../support/witness.js';
import { deliver, open, start, told } from './support.js';

describe.each(httpServers)('on $name', (server) => {
  test.each([
    ['a string', 'callback', 'This is not a documented callback.'],
    ['no known event', { event: 'transfer.pending' }, 'This is not a documented callback: see event.'],
    ['no data', { event: 'transfer.success' }, 'This is not a documented callback: see data.'],
    [
      'an empty data',
      { event: 'transfer.success', data: {} },
      'This is not a documented callback: see data.paymentMethod.',
    ],
  ])('the response to an invalid callback names the first wrong place: %s', async (_what, callback, message) => {
    const { url } = await start(server, witness().options);
    const answer = await deliver(url, JSON.stringify(callback));
    expect(answer.status).toBe(400);
    expect(answer.body).toBe(errorBody(400, message));
  });

  test('every response ends its connection once the receiver is closing, also for running deliveries', async () => {
    let finish: () => void = () => undefined;
    const running = new Promise<void>((resolve) => (finish = resolve));
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const onSuccess = (): Promise<void> => (begin(), running);
    const receiver = transferCallbackReceiver({ ...witness().options, onSuccess });
    const { url } = await start(server, { receiver });
    const first = deliver(url);
    await begun;
    const closed = receiver.close();
    const invalid = await deliver(url, {});
    expect([invalid.status, invalid.headers.connection]).toEqual([400, 'close']);
    finish();
    const processed = await first;
    expect([processed.status, processed.headers.connection]).toEqual([200, 'close']);
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
  });

  test.each([
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [30_000, '30'],
    [2_147_483_647, '2147484'],
  ])('RetryLater of %i ms is Retry-After: %s', async (retryAfterMs, seconds) => {
    const { url } = await start(server, {
      ...witness().options,
      onSuccess: () => Promise.reject(new RetryLater('later', { retryAfterMs })),
    });
    expect((await deliver(url)).headers['retry-after']).toBe(seconds);
  });

  test.each(['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])('the response to %s is 405', async (method) => {
    const { options, handled } = witness();
    const { url } = await start(server, options);
    const answer = await deliver(url, transferSucceeded(), method);
    expect(answer.status).toBe(405);
    expect(told(answer)).toEqual({ ...open, allow: 'POST' });
    const body = errorBody(405, 'A callback is a POST.');
    expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(body)));
    expect(answer.body).toBe(method === 'HEAD' ? '' : body);
    expect(handled).toEqual([]);
  });
});
