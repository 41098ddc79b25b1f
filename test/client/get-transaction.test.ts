import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { transferCallbackSchema } from 'transfer-callbacks';
import { inspectTransfer, reconcileTransfers, transferService, type Transaction } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, receiverOf } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import {
  catchError,
  credentials,
  final,
  hangUp,
  reconcile,
  refusal,
  startQueries,
  startService,
  transaction,
  transfers,
} from './support.js';

/** Code of your own that is broken. */
const bug = (): never => {
  throw new TypeError('no IBAN');
};

describe('getTransaction', () => {
  test('reads a transaction with the documented headers, under data or at the top', async () => {
    const { client, received } = await startService([
      [200, { error: false, data: transaction }],
      [200, transaction],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(await client.getTransaction('payout 1-é')).toEqual(transaction);
    expect(received.map(({ method, url, headers }) => [method, url, headers['x-api-secret']])).toEqual([
      ['GET', '/transactions/tr-1', credentials.apiSecret],
      ['GET', '/transactions/payout%201-%C3%A9', credentials.apiSecret],
    ]);
  });

  test('an id that is no string, or that a URL could read in another way, never gets into the path', async () => {
    const { client, received } = await startService([[200, transaction]]);
    for (const id of ['', '../admin', '%2e%2e', 'a\nb', 'a\u202Eb', '\uD800', 5, ['tr-1'], null]) {
      expect(await catchError(client.getTransaction(id as never)), String(id)).toMatchObject({ code: 'INVALID_ID' });
    }
    for (const id of [5, 5n]) {
      const { message } = await catchError(client.getTransaction(id as never));
      expect(message).toContain('or control character. It is a string, not 5: write `String(id)`.');
    }
    expect((await catchError(client.getTransaction('a/b'))).message).toMatch(/or control character\. See /);
    expect(received).toEqual([]);
  });

  test('the error for a signal in place of the options has the code to write', async () => {
    const { client } = await startService([[200, transaction]]);
    await expect(client.getTransaction('tr-1', AbortSignal.abort() as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: containing('Write `getTransaction(id, { signal })`.'),
    });
  });

  test('an id may have 255 characters, and any dots beside others', async () => {
    const { client, received } = await startService([[200, transaction]]);
    const ids = ['x'.repeat(255), '...', '.tr', '..tr', 'tr..'];
    for (const id of ids) await client.getTransaction(id);
    expect(received.map(({ url }) => url)).toEqual(ids.map((id) => `/transactions/${id}`));
  });

  test('`readTransaction` finds it where else it may be', async () => {
    const { client } = await startService([[200, { result: [transaction] }]], {
      readTransaction: (body) => (body as { result: Transaction[] }).result[0],
    });
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
  });

  test.each([{ data: { id: 'tr-1', status: 'SUCCESS' } }, null])(
    'a response such as %j has no transaction in it, and the error tells so',
    async (body) => {
      const { client } = await startService([[200, JSON.stringify(body)]]);
      expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({
        code: 'UNREADABLE_RESPONSE',
        status: 200,
        message: containing('No transaction with id, externalId and status was found'),
      });
    },
  );
});

// Ten failures of the service would end a run.
test.each<[string, () => unknown, string]>([
  ['throws', bug, '`readTransaction` threw: no IBAN'],
  ['returns null', () => null, 'No transaction with id, externalId and status was found'],
  ['rejects', () => Promise.reject(new Error('late')), 'Expected `readTransaction` to be synchronous, got a promise.'],
])(
  'a `readTransaction` that %s is not taken for an outage, and other transfers are handled',
  async (_, broken, text) => {
    const readTransaction = (body: unknown): Transaction => {
      const { data } = body as { data: Transaction };
      return Number(data.id.slice(3)) < 12 ? (broken() as Transaction) : data;
    };
    const { client } = await startQueries(final, { readTransaction });
    const receiver = receiverOf({ service: client, confirm: true });
    const report = await reconcileTransfers({ receiver, pending: transfers(15), concurrency: 1 });
    expect(report).toMatchObject({ processed: 3, failed: 12, stopped: undefined });
    const error = { code: 'UNREADABLE_RESPONSE', message: containing(text) };
    expect(report.problems[0]).toMatchObject({ id: 'tr-0', error });
    expect(await receiver.receive(transferSucceeded({ id: 'tr-0' }))).toMatchObject({ outcome: 'unconfirmed', error });
    const inspection = await inspectTransfer({ receiver, id: 'tr-0' });
    expect(inspection).toMatchObject({ verdict: 'undecided', service: { state: 'unread', error } });
  },
);

test('a schema that throws is not taken for an outage', async () => {
  const payload = { '~standard': { validate: bug } } as unknown as typeof transferCallbackSchema;
  const { client } = await startQueries(final, { payload });
  const report = await reconcile(client, { pending: transfers(12), concurrency: 1 });
  expect(report).toMatchObject({ failed: 12, stopped: undefined, problems: { 0: { error: { code: 'NOT_HANDLED' } } } });
});

describe('getTransaction, where the service fails,', () => {
  test('retries a query while the service responds 429', async () => {
    const { client, received } = await startService([
      [429, ''],
      [429, ''],
      [200, transaction],
    ]);
    expect(await client.getTransaction('tr-1')).toEqual(transaction);
    expect(received).toHaveLength(3);
  });

  test('gives up after the third time', async () => {
    const { client, received, baseUrl } = await startService([hangUp, refusal(500, 'Oops')]);
    expect(await catchError(client.getTransaction('tr-1'))).toMatchObject({
      code: 'UNAVAILABLE',
      status: 500,
      message: containing(
        `The service at ${new URL(baseUrl).origin} responded with 500, "Oops". The transfer could not be read.`,
      ),
    });
    expect(received).toHaveLength(3);
  });

  test.each([
    ['11 seconds', () => '11', 11_000],
    ['a date in an hour', () => new Date(Date.now() + 3_600_000).toUTCString(), 3_600_000],
  ])('rejects without waiting as long as a Retry-After of %s', async (_title, makeHeader, ms) => {
    const header = makeHeader();
    const { client, received } = await startService([[503, '', { 'Retry-After': header }]]);
    const error = await catchError(client.getTransaction('tr-1'));
    expect(received).toHaveLength(1);
    expect(error.retryAfterMs).toBeGreaterThan(ms / 2);
    expect(error.retryAfterMs).toBeLessThanOrEqual(ms);
  });

  /** Returns the pauses between the requests of a query, in milliseconds of a fake clock, and a result of the query. */
  async function measurePauses(responses: readonly (() => Response)[], random: number) {
    fakeClock();
    vi.spyOn(Math, 'random').mockReturnValue(random);
    onTestFinished(() => void vi.restoreAllMocks());
    const at: number[] = [];
    const respond = (): Response => (responses[at.push(performance.now()) - 1] ?? Response.error)();
    const fetch = (): Promise<Response> => Promise.resolve(respond());
    const query = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch }).getTransaction('tr-1');
    await vi.advanceTimersByTimeAsync(20_000);
    return { pauses: at.slice(1).map((ms, index) => ms - (at[index] ?? 0)), read: await query };
  }
  const busy = (headers?: Record<string, string>) => () =>
    new Response('', { status: 503, ...(headers && { headers }) });
  const found = (): Response => Response.json(transaction);

  test.each([
    [0, [125, 250]],
    [1, [375, 750]],
  ])('pauses for a random time that doubles: with %d for %j ms', async (random, pauses) => {
    expect(await measurePauses([busy(), busy(), found], random)).toEqual({ pauses, read: transaction });
  });

  test('waits for a Retry-After of 10 s', async () => {
    expect((await measurePauses([busy({ 'Retry-After': '10' }), found], 0)).pauses).toEqual([10_000]);
  });

  test('a signal that aborts during a request ends the query without a pause, and without another request', async () => {
    fakeClock();
    const reason = new Error('enough');
    const controller = new AbortController();
    const fetch = vi.fn<typeof globalThis.fetch>(() => {
      controller.abort(reason);
      return Promise.reject(new Error('down'));
    });
    const client = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch });
    await expect(client.getTransaction('tr-1', { signal: controller.signal })).rejects.toBe(reason);
    expect(fetch).toHaveBeenCalledOnce();
  });

  test('a query leaves no timer and no listener behind, whether it paused or not', async () => {
    fakeClock();
    const { signal } = new AbortController();
    const responses = [busy(), found];
    const fetch = (): Promise<Response> => Promise.resolve((responses.shift() ?? found)());
    const client = transferService({ ...credentials, baseUrl: 'http://127.0.0.1:9', fetch });
    const query = client.getTransaction('tr-1', { signal });
    await vi.advanceTimersByTimeAsync(1_000);
    await query;
    expect(vi.getTimerCount()).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test.each([5, null, new AbortController()])('sends nothing when its signal is %s', async (signal) => {
    const { client, received } = await startService([[200, '{}']]);
    await expect(client.getTransaction('tr-1', { signal } as never)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: containing('Expected `signal` to be an AbortSignal, got '),
    });
    expect(received).toEqual([]);
  });

  test('ends with its signal, before the first request and between two', async () => {
    const reason = new Error('enough');
    const controller = new AbortController();
    const { signal } = controller;
    const { client, received } = await startService([[503, '', { 'Retry-After': '9' }]]);
    const call = client.getTransaction('tr-1', { signal });
    await vi.waitUntil(() => received.length === 1);
    setTimeout(() => {
      controller.abort(reason);
    }, 50);
    await expect(call).rejects.toBe(reason);
    await expect(client.getTransaction('tr-1', { signal })).rejects.toBe(reason);
    expect(received).toHaveLength(1);
  });
});
