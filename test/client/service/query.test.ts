// How a service is asked by its `query`, and what `get` does with a response.
import { inspect as show } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { memoryStore } from 'transfer-callbacks';
import {
  defineService,
  inspectTransfer,
  reconcileTransfer,
  reconcileTransfers,
  TransferClientError,
  type ServiceOptions,
} from 'transfer-callbacks/client';
import { later } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { announced, read, reversingReceiver, reversingService, states } from '../../support/helpers/reversing.js';
import { serveForTest } from '../../support/servers/serve-for-test.js';
import { startService, type Reply } from '../support.js';
import { apiKey, listOf } from './support.js';

type Query = NonNullable<ServiceOptions<unknown, never, never>['query']>;

/** A receiver of a service with this `query`, and how its service is asked. */
function asking(query: Query, options: object = {}) {
  const service = defineService({ read, states, query, ...options });
  const { receiver, ran } = reversingReceiver(memoryStore(), { service });
  const ask = (id = 'a', signal?: AbortSignal) => reconcileTransfer({ receiver, id, signal });
  return { receiver, ran, ask };
}

/** A service that responds with these replies in turn, and is asked by `get` at `/payouts/ID`. */
async function startAsking(replies: readonly Reply[], options: object = {}) {
  const { baseUrl, received } = await startService(replies);
  const query: Query = (id, get) => get(`/payouts/${id}`, { authorization: `Bearer ${apiKey}` });
  return { received, baseUrl, ...asking(query, { baseUrl, ...options }) };
}

const paid: Reply = [200, announced('SUCCESS', 'a')];

describe('`get`', () => {
  test('sends the headers to the path under `baseUrl`, or to a whole URL', async () => {
    const { baseUrl, received } = await startService([paid]);
    const authorization = `Bearer ${apiKey}`;
    for (const [base, url] of [
      [baseUrl, '/payouts/a'],
      [`${baseUrl}/api//`, '/v3/a?next=https://merchant.example/'],
      ['https://never.example', `${baseUrl}/v2/a`],
      ['https://never.example', `${baseUrl.replace('http', 'HTTP')}/v4/a`],
    ] as const) {
      const { ask } = asking((_id, get) => get(url, { authorization }), { baseUrl: base });
      expect(await ask(), url).toEqual({ id: 'a', result: 'processed', status: 'payout.paid' });
    }
    expect(received.map(({ method, url, headers }) => [method, url, headers.authorization])).toEqual(
      ['/payouts/a', '/api/v3/a?next=https://merchant.example/', '/v2/a', '/v4/a'].map((url) => [
        'GET',
        url,
        authorization,
      ]),
    );
  });

  test('reads JSON of at most 1 MiB', async () => {
    const { ask } = await startAsking([[200, `{"long":"${'x'.repeat(1_048_576)}"}`]]);
    const error = { code: 'UNREADABLE_RESPONSE', status: 200, message: containing('or is longer than 1 MiB') };
    expect(await ask()).toMatchObject({ result: 'failed', error });
    const html = await startAsking([[200, '<html>']]);
    expect(await html.ask()).toMatchObject({ result: 'failed', error });
  });

  test('gives up a request after timeoutMs, and everything when the signal aborts', async () => {
    const silent: Reply = () => undefined;
    // On a busy machine a request may not reach the service in this time.
    const fetch = vi.fn(globalThis.fetch);
    const { ask } = await startAsking([silent], { timeoutMs: 50, fetch });
    expect(await ask()).toMatchObject({ error: { code: 'UNAVAILABLE', message: containing('within 50 ms') } });
    expect(fetch).toHaveBeenCalledTimes(3);
    const long = await startAsking([silent]);
    const controller = new AbortController();
    const asked = long.ask('a', controller.signal);
    await vi.waitUntil(() => long.received.length === 1);
    controller.abort();
    expect(await asked).toEqual({ id: 'a', result: 'pending', reason: 'not_read' });
    expect(await long.ask('a', AbortSignal.abort())).toMatchObject({ reason: 'not_read' });
    expect(long.received).toHaveLength(1);
  });

  test('sends nothing to what is no http or https URL, and shows no credentials of one', async () => {
    for (const url of [
      '/payouts/a',
      'ftp://service.example/http://service.example',
      'file:///etc/passwd',
      'data:application/json,{}',
      `https://user:${apiKey}@service.example/`,
      'https://',
    ]) {
      const fetch = vi.fn(globalThis.fetch);
      const ended = await asking((_id, get) => get(url), { fetch }).ask();
      expect(ended, url).toMatchObject({ result: 'failed', error: { code: 'INVALID_ARGUMENT' } });
      expect(show(ended, { depth: null, showHidden: true })).not.toContain(apiKey);
      expect(fetch).not.toHaveBeenCalled();
    }
  });

  test('shows no secret of the headers, wherever it comes back', async () => {
    const body = { error: true, statusCode: 400, message: `Unknown key ${apiKey}`, data: null };
    const repeating = await startAsking([[400, body]]);
    const raw = await serveForTest((request, response) =>
      response.socket?.end(`nonsense ${request.headers.authorization}`),
    );
    const nonsense = asking((_id, get) => get(raw, { authorization: `Bearer ${apiKey}` }));
    const broken = asking((_id, get) => get(raw, { authorization: `Bearer ${apiKey}\n x` }));
    for (const { ask } of [repeating, nonsense, broken]) {
      const ended = await ask();
      expect(ended).toMatchObject({
        result: 'failed',
        error: { code: expect.stringMatching(/REFUSED|UNAVAILABLE/) as string },
      });
      expect(show(ended, { depth: null, showHidden: true })).not.toContain(apiKey);
    }
  });

  test('redacts words of the headers and values of the URL from 8 characters on, and shows the id', async () => {
    const id = 'payout of today';
    const longer = 'a secret+of the URL';
    const secrets = ['in-eight', longer, encodeURIComponent(longer), 'a secret', 'bare-token'];
    const shown = [id, encodeURIComponent(id), 'Bearer', 'a-seven'];
    const message = [...shown, ...secrets].join('|');
    const { baseUrl } = await startService([[400, { error: true, statusCode: 400, message, data: null }]]);
    const path = `/?bare-token&id=${encodeURIComponent(id)}&old=a%20secret&token=${encodeURIComponent(longer)}`;
    const { ask } = asking((_id, get) => get(path, { authorization: 'Bearer a-seven in-eight\n' }), { baseUrl });
    const { error } = await ask(id);
    const redacted = [...shown, ...secrets.map(() => '[redacted]')].join('|');
    expect(error).toMatchObject({ code: 'REFUSED', body: { message: redacted } });
    expect(secrets.filter((secret) => show(error).includes(secret))).toEqual([]);
  });

  test('names a header without a value, and sends nothing', async () => {
    const { ask } = asking((_id, get) => get('http://127.0.0.1:9/', { 'x-api-key': undefined as never }));
    const message = containing(
      'Expected `query` to give `get` headers that are strings, and `x-api-key` is undefined.',
    );
    expect(await ask()).toMatchObject({ result: 'failed', error: { code: 'INVALID_ARGUMENT', message } });
  });
});

describe('a `query`', () => {
  test('is not called for an id that would lead to another path', async () => {
    const query = vi.fn<Query>();
    for (const id of ['a/b', '..', '.', 'a?b', 'a#b', 'a%2Fb', 'a\\b', ' a', '.. ', ' ', 'a\u00a0', 'x'.repeat(256)]) {
      expect(await asking(query).ask(id), id).toMatchObject({ result: 'failed', error: { code: 'INVALID_ID' } });
    }
    expect(query).not.toHaveBeenCalled();
  });

  test('that resolves with undefined does not know the transfer', async () => {
    const { receiver, ask } = asking(() => undefined);
    const error = { code: 'REFUSED', status: 404, authenticationFaults: [] };
    expect(await ask()).toMatchObject({ result: 'unknown', error });
    const inspection = await inspectTransfer({ receiver, id: 'a' });
    expect(inspection).toMatchObject({
      verdict: 'unknown',
      meaning: containing('The service does not know the transfer'),
    });
  });

  test('that resolves with undefined after a success does not know it either, and is asked whether it returns', async () => {
    const message = containing('`query` resolved with undefined after a 2xx: does it return?');
    const { baseUrl } = await startService([paid, [404, '']]);
    const forgetful: Query = async (id, get) => {
      await get(`/${id}`);
    };
    const { ask } = asking(forgetful, { baseUrl });
    expect(await ask()).toMatchObject({ result: 'unknown', error: { code: 'REFUSED', status: 404, message } });
    const refused = await ask();
    expect(refused).toMatchObject({ result: 'unknown', error: { status: 404 } });
    expect(String(refused.error)).not.toContain('does it return');
  });

  test('that does not await `get` is told so, and what is never awaited ends nothing when it rejects', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const { baseUrl, received } = await startService([[404, '']]);
    const forgetful: Query[] = [
      (id, get) => ({ event: 'payout.paid', data: get(`/${id}`) }),
      (id, get) => ({ event: 'payout.paid', data: { id, parts: [get(`/${id}`).then((found: unknown) => found)] } }),
      (_id, get) => [get('ftp://service.example'), get('ftp://service.example').then()],
    ];
    for (const query of forgetful) {
      const message = containing('Expected `query` to resolve with a transfer, got a promise in it. Write `await get(');
      const ended = await asking(query, { baseUrl }).ask();
      expect(ended).toMatchObject({ result: 'failed', error: { code: 'UNREADABLE_RESPONSE', message } });
    }
    const dropping = asking((id, get) => (void get('ftp://service.example'), announced('SUCCESS', id)));
    expect(await dropping.ask()).toMatchObject({ result: 'processed' });
    // The responses to the first two have come before that to another request.
    await vi.waitUntil(() => received.length === 2);
    await asking((id, get) => get(`/${id}`), { baseUrl }).ask();
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  test('that throws before a response is an outage, and behind one it is not: ten of them do not end a run', async () => {
    const { baseUrl } = await startService(({ url = '' }) => [200, announced('SUCCESS', url.slice(1))]);
    const bug = (): never => {
      throw new TypeError('no IBAN');
    };
    const run = async (query: Query) => {
      const { receiver } = asking(query);
      const ids = Array.from({ length: 14 }, (_, index) => `p${index}`);
      return reconcileTransfers({ receiver, pending: listOf(...ids), concurrency: 1 });
    };
    const isFaulty = (id: string): boolean => Number(id.slice(1)) < 12;
    const after = await run(async (id, get) => {
      const found: unknown = await get(`${baseUrl}/${id}`);
      return isFaulty(id) ? bug() : found;
    });
    expect(after).toMatchObject({ processed: 2, failed: 12, stopped: undefined });
    expect(after.problems[0]?.error).toMatchObject({
      ...{
        code: 'UNREADABLE_RESPONSE',
        message: containing('`query` threw: no IBAN'),
        cause: expect.any(TypeError) as unknown,
      },
    });
    const { ask } = asking(bug);
    expect(await ask()).toMatchObject({
      error: { code: 'UNAVAILABLE', message: containing('`query` threw: no IBAN') },
    });
    const own = asking(() => {
      throw new TransferClientError('REFUSED', 'No', { status: 404 });
    });
    expect(await own.ask()).toMatchObject({ result: 'unknown' });
  });

  test('whose response `read` refuses, or cannot read, does not end a run', async () => {
    for (const [response, why] of [
      [{ event: 'payout.paid' }, 'id: Expected a string or a whole number, got undefined'],
      [{ event: 'payout.lost', data: { id: 'a', externalId: 'b' } }, 'Expected a key of `states`, got payout.lost'],
      [null, 'Reading it threw TypeError'],
      [announced('SUCCESS', 'another'), 'The service responded with another transfer.'],
    ] as const) {
      const { receiver, ran } = asking(() => response);
      const pending = listOf(...Array.from({ length: 12 }, (_, index) => `p${index}`));
      const report = await reconcileTransfers({ receiver, pending, concurrency: 1 });
      expect(report).toMatchObject({ failed: 12, stopped: undefined });
      const error = { code: 'UNREADABLE_RESPONSE', message: containing(why) };
      expect(report.problems[0]).toMatchObject({ error });
      expect(await inspectTransfer({ receiver, id: 'p1' })).toMatchObject({ verdict: 'undecided', service: { error } });
      expect(ran).toEqual([]);
    }
  });

  test('that never finishes, and has no signal, does not hold a run that is aborted', async () => {
    const [asked, never] = [later(), later()];
    const { receiver } = asking(() => {
      asked.resolve();
      return never.promise;
    });
    const controller = new AbortController();
    const run = reconcileTransfers({ receiver, pending: listOf('a'), signal: controller.signal });
    await asked.promise;
    controller.abort();
    expect(await run).toMatchObject({ pending: 1, stopped: 'aborted' });
    never.resolve();
  });
});

test('a service that cannot be asked is refused when a run is made', async () => {
  const { receiver } = reversingReceiver(memoryStore(), { service: reversingService });
  const code = 'INVALID_ARGUMENT';
  const message = containing('Expected `receiver` to be one whose `service` can be asked');
  for (const call of [
    reconcileTransfers({ receiver, pending: [] }),
    reconcileTransfers({ receiver, paid: [] }),
    reconcileTransfer({ receiver, id: 'a' }),
  ]) {
    await expect(call).rejects.toMatchObject({ code, message });
  }
});
