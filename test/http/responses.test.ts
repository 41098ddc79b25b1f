import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import {
  RetryLater,
  transferCallbackReceiver,
  type CallbackStore,
  type TransferCallback,
  type TransferCallbackOptions,
  type TransferCallbackOutcome,
} from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { outcomes, type OutcomeName } from '../../src/core/outcomes.js';
import { toResponse } from '../../src/http/responses.js';
import { httpServers, nodeServers, webServer, type HttpServer } from '../support/servers/http-servers.js';
import { errorBody, type PostResponse } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { later } from '../core/support.js';
import { deliver, keptOpen, ownHeaders, start, startRecording } from './support.js';

const retryLater = { ...keptOpen, 'retry-after': '30' };

interface Row {
  outcome: OutcomeName;
  status: number;
  /** Default: `keptOpen`. */
  headers?: Record<string, string>;
  /** The message of a response that acknowledges nothing. */
  message?: string;
  /** Makes the requests that lead to the outcome, and resolves with the last response. */
  request: (server: HttpServer) => Promise<PostResponse>;
}

/** Makes a request to a receiver with one option. */
function byOption(given: Partial<TransferCallbackOptions>): Row['request'] {
  return async (server) => deliver((await startRecording(server, { ...given })).url);
}

const brokenStore: CallbackStore = { claim: () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:6379')) };

const rows: Row[] = [
  { outcome: 'processed', status: 200, request: byOption({}) },
  {
    outcome: 'duplicate',
    status: 200,
    async request(server) {
      const { url } = await startRecording(server);
      const callback = transferFailed();
      await deliver(url, callback);
      return deliver(url, callback);
    },
  },
  {
    outcome: 'ignored',
    status: 200,
    async request(server) {
      const service = defineService({
        read: ({ event }: TransferCallback) => ({ ignored: event }),
        states: { paid: 'SUCCESS', bounced: 'FAILED' },
      });
      return deliver((await startRecording(server, { service })).url);
    },
  },
  {
    outcome: 'in_progress',
    status: 409,
    headers: retryLater,
    message: 'Another delivery of this callback is being handled.',
    async request(server) {
      const [begun, running] = [later(), later()];
      const onSuccess = (): Promise<void> => (begun.resolve(), running.promise);
      const { url } = await startRecording(server, { onSuccess, inFlightWaitMs: 0 });
      const callback = transferSucceeded();
      const first = deliver(url, callback);
      await begun.promise;
      const second = await deliver(url, callback);
      running.resolve();
      expect((await first).body).toBe('{"outcome":"processed"}');
      return second;
    },
  },
  {
    outcome: 'conflict',
    status: 422,
    message: 'A callback with this id was handled with other facts.',
    async request(server) {
      const { url } = await startRecording(server);
      const { data } = transferSucceeded();
      await deliver(url, transferSucceeded({ ...data, amount: 1 }));
      return deliver(url, transferSucceeded({ ...data, amount: 2 }));
    },
  },
  {
    outcome: 'invalid',
    status: 400,
    message: 'This is not the expected callback. See data.amount.',
    async request(server) {
      const { event, data } = transferSucceeded();
      return deliver((await startRecording(server)).url, { event, data: { ...data, amount: '15000' } });
    },
  },
  {
    outcome: 'unauthorized',
    status: 401,
    message: 'The sender is not verified.',
    request: byOption({ verify: () => false }),
  },
  {
    outcome: 'unconfirmed',
    status: 503,
    headers: retryLater,
    message: 'The callback could not be confirmed.',
    request: byOption({ confirm: () => undefined }),
  },
  {
    outcome: 'retry_later',
    status: 503,
    headers: { ...keptOpen, 'retry-after': '90' },
    message: 'The callback cannot be handled now.',
    request: byOption({
      onSuccess: () => Promise.reject(new RetryLater('the ledger is locked', { retryAfterMs: 90_000 })),
    }),
  },
  {
    outcome: 'handler_failed',
    status: 500,
    message: 'The callback could not be handled.',
    request: byOption({ onSuccess: () => Promise.reject(new Error('the ledger is gone')) }),
  },
  {
    outcome: 'timed_out',
    status: 503,
    headers: retryLater,
    message: 'The callback was not handled in time.',
    request: byOption({
      handlerTimeoutMs: 10,
      onSuccess: (_callback, { signal }) => once(signal, 'abort'),
    }),
  },
  {
    outcome: 'store_unavailable',
    status: 503,
    headers: retryLater,
    message: 'The callback could not be recorded.',
    request: byOption({ store: brokenStore }),
  },
  {
    outcome: 'closing',
    status: 503,
    headers: retryLater,
    message: 'The server is closing.',
    async request(server) {
      const receiver = transferCallbackReceiver(recordingOptions().options);
      const { url } = await start(server, { receiver });
      await receiver.close();
      return deliver(url);
    },
  },
];

test('every outcome has a row here', () => {
  expect(rows.map(({ outcome }) => outcome)).toEqual(Object.keys(outcomes));
});

test('of all outcomes and faults only processed, duplicate and the declared ignored make a 2xx', () => {
  // `ignored` is the exception: the definition of a service declares that no handler is needed.
  const acknowledged = ['processed', 'duplicate', 'ignored'];
  const details = { source: 'http', durationMs: 1, issues: [], retryAfterMs: 200, status: 200, statusCode: 200 };
  for (const [outcome, row] of Object.entries(outcomes)) {
    expect([outcome, row.status < 300]).toEqual([outcome, acknowledged.includes(outcome)]);
    for (const error of [undefined, new Error('no'), { status: 200 }]) {
      for (const fault of [undefined, { status: 413, message: 'too long' } as const]) {
        const { status } = toResponse({ ...details, outcome, error } as unknown as TransferCallbackOutcome, fault);
        expect([outcome, status < 300]).toEqual([outcome, acknowledged.includes(outcome)]);
      }
    }
  }
});

/** Everything that others have sent over the wire from an error. Nothing of it may show. */
const tale = 'tale of postgres://admin:hunter2@db';
const passing = { status: 200, statusCode: 200, expose: true, body: tale, toJSON: () => tale };
const thrown: [string, unknown][] = [
  ['an error', Object.assign(new Error(tale, { cause: new Error(tale) }), passing)],
  ['an error of the package', Object.assign(new AggregateError([], tale), { code: 'CLOSING', outcome: 'processed' })],
  ['an object that looks handled', { status: 200, outcome: 'processed' }],
  ['the text route', 'route'],
  ['undefined', undefined],
  ['a symbol', Symbol(tale)],
  ['an object without a prototype', Object.create(null) as unknown],
];
type Fail = () => Promise<never>;
const places: [OutcomeName, (fail: Fail) => object][] = [
  ['handler_failed', (fail) => ({ onSuccess: fail })],
  ['unconfirmed', (fail) => ({ confirm: fail })],
  ['unauthorized', (fail) => ({ verify: fail })],
  ['store_unavailable', (fail) => ({ store: { claim: fail } })],
];

describe.each(httpServers)('on $name', (server) => {
  test.each(rows)(
    'the response to $outcome is $status',
    async ({ outcome, status, headers = keptOpen, message, request }) => {
      const response = await request(server);
      const body = message === undefined ? JSON.stringify({ outcome }) : errorBody(status, message);
      expect(response.status).toBe(status);
      expect(response.body).toBe(body);
      expect(response.headers['content-length']).toBe(String(Buffer.byteLength(body)));
      // A web response cannot end its connection.
      const connection = outcome === 'closing' && server !== webServer ? 'close' : 'keep-alive';
      expect(ownHeaders(response)).toEqual({ ...headers, connection });
    },
  );

  test.each(places)(
    'nothing that is thrown before `%s`, or rejected with, reaches the wire',
    async (outcome, given) => {
      let fail: Fail = () => expect.fail('not yet');
      const { url, passedOn } = await startRecording(server, { ...given(() => fail()) });
      const { status, message } = outcomes[outcome] as { status: number; message: string };
      for (const [what, reason] of thrown) {
        const throwing = (): never => {
          throw reason;
        };
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- JavaScript may throw anything.
        for (fail of [throwing, () => Promise.reject(reason)]) {
          const response = await deliver(url);
          expect([what, response.status, response.body]).toEqual([what, status, errorBody(status, message)]);
          expect(JSON.stringify(response.headers)).not.toContain('tale');
        }
      }
      expect(passedOn).toEqual([]);
    },
  );

  test('the response to a body that is no object names no place', async () => {
    const { url } = await startRecording(server);
    const response = await deliver(url, '"callback"');
    expect([response.status, response.body]).toEqual([400, errorBody(400, 'This is not the expected callback.')]);
  });

  test('the pause of RetryLater is rounded up to seconds', async () => {
    for (const [retryAfterMs, seconds] of [
      [1, '1'],
      [1_000, '1'],
      [1_001, '2'],
    ] as const) {
      const onSuccess = () => Promise.reject(new RetryLater('later', { retryAfterMs }));
      const { url } = await startRecording(server, { onSuccess });
      expect((await deliver(url)).headers['retry-after']).toBe(seconds);
    }
  });

  test('the response to any other method than POST is 405', async () => {
    const { url, handled } = await startRecording(server);
    const body = errorBody(405, 'A callback is a POST.');
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const response = await deliver(url, transferSucceeded(), method);
      expect([method, response.status, response.body]).toEqual([method, 405, method === 'HEAD' ? '' : body]);
      expect(ownHeaders(response)).toEqual({ ...keptOpen, allow: 'POST' });
      expect(response.headers['content-length']).toBe(String(Buffer.byteLength(body)));
    }
    expect(handled).toEqual([]);
  });
});

describe.each(nodeServers)('on $name', (server) => {
  test('every response ends its connection once the receiver is closing, also for running deliveries', async () => {
    const [begun, running] = [later(), later()];
    const onSuccess = (): Promise<void> => (begun.resolve(), running.promise);
    const receiver = transferCallbackReceiver({ ...recordingOptions().options, onSuccess });
    const { url } = await start(server, { receiver });
    const first = deliver(url);
    await begun.promise;
    const closed = receiver.close();
    const invalid = await deliver(url, {});
    expect([invalid.status, invalid.headers.connection]).toEqual([400, 'close']);
    running.resolve();
    const processed = await first;
    expect([processed.status, processed.headers.connection]).toEqual([200, 'close']);
    expect(await closed).toEqual({ unfinished: 0, ids: [] });
  });
});
