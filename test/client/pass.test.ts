import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  confirmWith,
  ReconciliationError,
  reconcileTransfers,
  type PendingTransfer,
  type Reconciled,
  type ReconciliationReport,
} from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf, storeWith } from '../core/support.js';
import { freePort } from '../support/port.js';
import { refusal, startQueries, type Reply } from './support.js';

afterEach(() => {
  vi.useRealTimers();
});

const old = (id: string): PendingTransfer => ({ id, createdAt: Date.now() - 3_600_000 });
const transfers = (count: number): PendingTransfer[] => Array.from({ length: count }, (_, index) => old(`tr-${index}`));
const final = (id: string): Reply => [200, { data: transferSucceeded({ id }).data }];
const total = ({ processed, duplicate, pending, unknown, failed }: ReconciliationReport): number =>
  processed + duplicate + pending + unknown + failed;

/** Lets 20 ms of the fake time pass in each turn of the event loop, so that sockets work meanwhile. */
async function inFakeTime<T>(run: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const running = run();
  const ended = { yet: false };
  const end = (): void => {
    ended.yet = true;
  };
  running.then(end, end);
  while (!ended.yet) {
    await vi.advanceTimersByTimeAsync(20);
    await new Promise(setImmediate);
  }
  return running;
}

describe('a pass, while the service is in trouble,', () => {
  test('ends when the service asks for a pause of over a minute', async () => {
    const { client, received } = await startQueries(() => [503, '', { 'Retry-After': '3600' }]);
    const report = await reconcileTransfers({ client, receiver: receiverOf(), pending: transfers(3_000) });
    expect(report.stopped).toBe('unavailable');
    expect(received.length).toBeLessThanOrEqual(4);
    console.info(`503, Retry-After 3600, 3 000 transfers: ${received.length} requests.`);
  });

  test('does not query the next transfer before the time that the service asks for', async () => {
    const at: number[] = [];
    const { client } = await startQueries((id) => {
      at.push(performance.now());
      return id === 'tr-0' ? [429, '', { 'Retry-After': '20' }] : final(id);
    });
    const report = await inFakeTime(() =>
      reconcileTransfers({ client, receiver: receiverOf(), pending: transfers(3), concurrency: 1 }),
    );
    expect(report).toMatchObject({ processed: 2, failed: 1, stopped: undefined });
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(20_000);
    expect((at[2] ?? 0) - (at[1] ?? 0)).toBeLessThan(5_000);
  });

  test.each([1, 4])('ends after 10 failures in a row, with growing pauses, at concurrency %i', async (concurrency) => {
    const port = await freePort();
    let requests = 0;
    const { client } = await startQueries(() => refusal(500, 'Not asked'), {
      baseUrl: `http://127.0.0.1:${port}`,
      fetch: (...request) => {
        requests += 1;
        return fetch(...request);
      },
    });
    const report = await inFakeTime(() =>
      reconcileTransfers({ client, receiver: receiverOf(), pending: transfers(10_000), concurrency }),
    );
    expect(report.stopped).toBe('unavailable');
    expect(report.failed).toBe(10);
    expect(report.queries).toBeLessThan(10 + concurrency);
    expect(requests).toBeLessThanOrEqual(3 * report.queries);
    expect(report.durationMs).toBeGreaterThan(60_000);
    console.info(
      `unreachable, 10 000 transfers, concurrency ${concurrency}: ${requests} requests in ${Math.round(report.durationMs / 1_000)} s.`,
    );
  });

  test('ends after 10 refusals in a row: the key may be revoked', async () => {
    const { client, received } = await startQueries(() => refusal(400, 'Key revoked'));
    const report = await reconcileTransfers({ client, receiver: receiverOf(), pending: transfers(2_000) });
    expect(report).toMatchObject({ stopped: 'refused', failed: 10 });
    expect(total(report)).toBe(report.queries);
    expect(received.length).toBeLessThanOrEqual(13);
    console.info(`400 for all, 2 000 transfers: ${received.length} requests.`);
  });

  test('goes on where failures are not in a row, and where transfers are unknown or their ids are bad', async () => {
    const { client } = await startQueries((id) => {
      const index = Number(id.slice(3));
      if (index >= 100) return refusal(404, 'Unknown');
      return index % 10 === 9 ? final(id) : refusal(400, 'No');
    });
    const pending = [...transfers(120), ...Array.from({ length: 20 }, () => old('a/b'))];
    const report = await reconcileTransfers({ client, receiver: receiverOf(), pending, concurrency: 1 });
    expect(report).toMatchObject({ stopped: undefined, processed: 10, failed: 110, unknown: 20 });
  });

  test('ends when the store of the receiver stays down', async () => {
    const { client } = await startQueries(final);
    const store = storeWith({ claim: () => Promise.reject(new Error('no store')) });
    const report = await inFakeTime(() =>
      reconcileTransfers({ client, receiver: receiverOf({ store }), pending: transfers(100), concurrency: 1 }),
    );
    expect(report).toMatchObject({ stopped: 'store_unavailable', failed: 10, queries: 10 });
    expect(report.problems[0]).toMatchObject({
      outcome: 'store_unavailable',
      error: { message: 'The receiver ended with store_unavailable: no store.' },
    });
  });

  test('ends when the receiver closes: what was not handled is pending, and the next pass begins there', async () => {
    const { client, received } = await startQueries(final);
    const receiver = receiverOf();
    const report = await reconcileTransfers({
      client,
      receiver,
      pending: transfers(1_000),
      onProgress: (_reconciled, { processed }) => {
        if (processed === 50) void receiver.close();
      },
    });
    expect(report).toMatchObject({ stopped: 'closing', failed: 0 });
    expect(received.length).toBeLessThan(60);
    expect(total(report)).toBe(report.processed + report.pending);
    const done = Number(report.cursor?.id.slice(3)) + 1;
    expect(done).toBeGreaterThanOrEqual(45);
    expect(done).toBeLessThanOrEqual(report.processed);
  });

  test('may be ended while it pauses', async () => {
    const { client } = await startQueries(() => [503, '', { 'Retry-After': '50' }]);
    const controller = new AbortController();
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: transfers(5),
      concurrency: 1,
      signal: controller.signal,
      onProgress: ({ result }) => {
        if (result === 'failed') setTimeout(() => { controller.abort(); }, 20); // prettier-ignore
      },
    });
    expect(report).toMatchObject({ stopped: 'aborted', failed: 1, pending: 1, queries: 1, cursor: { id: 'tr-0' } });
  });
});

describe('the limits of a pass', () => {
  test('`limit` ends it after so many transfers, and all of these are read', async () => {
    const { client } = await startQueries(final);
    const options = { client, receiver: receiverOf(), limit: 7 };
    const report = await reconcileTransfers({ ...options, pending: transfers(20) });
    expect(report).toMatchObject({ stopped: 'limit', processed: 7, pending: 0, queries: 7, cursor: { id: 'tr-6' } });
    expect(await reconcileTransfers({ ...options, pending: [] })).toMatchObject({ stopped: undefined });
  });

  test('`deadlineMs` ends it: what is being read stays pending, and a handler that runs comes to its end', async () => {
    const { client } = await startQueries((id) => (id === 'tr-1' ? () => undefined : final(id)));
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf({ onSuccess: () => pause(3_000) }),
      pending: transfers(20),
      concurrency: 2,
      deadlineMs: 2_500,
    });
    expect(report).toMatchObject({ stopped: 'deadline', processed: 1, pending: 1, cursor: { id: 'tr-0' } });
  });

  test('`queriesPerSecond` spaces the queries, and young transfers do not wait', async () => {
    const at: number[] = [];
    const { client } = await startQueries((id) => {
      at.push(performance.now());
      return final(id);
    });
    const young = Array.from({ length: 100 }, (_, index) => ({ id: `young-${index}`, createdAt: Date.now() }));
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: [...young, ...transfers(6)],
      queriesPerSecond: 20,
    });
    expect(report).toMatchObject({ processed: 6, pending: 100 });
    expect(report.durationMs).toBeGreaterThanOrEqual(249);
  });
});

describe('the report of a pass', () => {
  test('has a cursor: the last transfer up to which all were read, even if later ones are done', async () => {
    const controller = new AbortController();
    const { client } = await startQueries((id) => (id === 'tr-3' ? () => undefined : final(id)));
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: transfers(10),
      concurrency: 3,
      signal: controller.signal,
      onProgress: (_reconciled, { processed }) => {
        if (processed === 9) controller.abort();
      },
    });
    expect(report).toMatchObject({ stopped: 'aborted', processed: 9, pending: 1, cursor: { id: 'tr-2' } });
  });

  test('counts queries, time, and the age of the oldest transfer that is still open', async () => {
    const { client } = await startQueries((id) =>
      id === 'open' ? [200, { ...transferSucceeded({ id }).data, status: 'PENDING' }] : final(id),
    );
    const ages = { done: 9_000_000, open: 5_000_000, young: 1_000 };
    const pending = Object.entries(ages).map(([id, ageMs]) => ({ id, createdAt: Date.now() - ageMs }));
    const told: Reconciled[] = [];
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending,
      concurrency: 1,
      onProgress: (reconciled) => told.push(reconciled),
    });
    expect(report).toMatchObject({ queries: 2, processed: 1, pending: 2 });
    expect(report.oldestOpenMs).toBeGreaterThanOrEqual(5_000_000);
    expect(report.oldestOpenMs).toBeLessThan(5_100_000);
    expect(report.durationMs).toBeGreaterThan(0);
    expect(told).toEqual([
      { id: 'done', result: 'processed' },
      { id: 'open', result: 'pending', reason: 'not_final' },
      { id: 'young', result: 'pending', reason: 'too_young' },
    ]);
  });

  test('reports where a transaction is invalid, in the error and as issues', async () => {
    const { client } = await startQueries((id) => [200, { ...transferSucceeded({ id }).data, vouchercode: undefined }]);
    const { problems } = await reconcileTransfers({ client, receiver: receiverOf(), pending: transfers(1) });
    expect(problems).toMatchObject([
      {
        outcome: 'invalid',
        issues: [{ path: ['data', 'vouchercode'] }],
        error: {
          code: 'NOT_HANDLED',
          message: expect.stringMatching(/^The receiver ended with invalid: data\.vouchercode: .*string/) as string,
        },
      },
    ]);
  });

  test('is safe as JSON: codes and messages, and nothing of the errors of a driver', async () => {
    const driver = Object.assign(new Error('down'), { parameters: ['+237670000000'], connection: {} });
    driver.connection = driver; // JSON.stringify would throw.
    const { client } = await startQueries(final);
    const report = await reconcileTransfers({
      client,
      receiver: receiverOf({ onSuccess: () => Promise.reject(driver) }),
      pending: [...transfers(1), old('a/b')],
    });
    const text = JSON.stringify(report);
    expect(JSON.parse(text)).toMatchObject({
      failed: 2,
      problems: expect.arrayContaining([
        {
          id: 'tr-0',
          result: 'failed',
          outcome: 'handler_failed',
          error: {
            name: 'TransferClientError',
            code: 'NOT_HANDLED',
            message: 'The receiver ended with handler_failed: down.',
          },
        },
        expect.objectContaining({ id: 'a/b', error: expect.objectContaining({ code: 'INVALID_ID' }) as unknown }),
      ]) as unknown,
    });
    expect(text).not.toContain('237670000000');
  });

  test('a client or a receiver of your own that throws is the failure of one transfer', async () => {
    const rejecting = { receive: () => Promise.reject(new Error('the queue is full')) };
    const { data } = transferSucceeded({ id: 'a' });
    const options = { receiver: rejecting, pending: [old('a')] };
    const unread = await reconcileTransfers({
      ...options,
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- JavaScript may.
      client: { getTransaction: () => Promise.reject(undefined) },
    });
    expect(unread.problems).toMatchObject([
      { error: { code: 'UNAVAILABLE', message: 'The transfer could not be read: undefined' } },
    ]);
    const unhandled = await reconcileTransfers({
      ...options,
      client: { getTransaction: () => Promise.resolve({ ...data }) },
    });
    expect(unhandled.problems).toMatchObject([
      { error: { code: 'NOT_HANDLED', message: 'The receiver rejected: the queue is full' } },
    ]);
  });
});

describe('code of yours that throws', () => {
  async function catchError(pass: Promise<unknown>): Promise<ReconciliationError<ReconciliationReport>> {
    const error = await pass.then(
      () => expect.fail('it did not reject'),
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(ReconciliationError);
    return error as ReconciliationError<ReconciliationReport>;
  }

  test('in `pending` rejects with the report of what was done', async () => {
    const { client } = await startQueries(final);
    const cause = new Error('the cursor is gone');
    function* cursor(): Generator<PendingTransfer> {
      yield* transfers(5);
      throw cause;
    }
    const error = await catchError(reconcileTransfers({ client, receiver: receiverOf(), pending: cursor() }));
    expect(error).toMatchObject({
      code: 'PENDING_FAILED',
      message: '`pending` threw: the cursor is gone',
      cause,
      report: { processed: 5, stopped: 'error', cursor: { id: 'tr-4' } },
    });
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ code: 'PENDING_FAILED', report: { processed: 5 } });
  });

  test('in an asynchronous `onProgress` ends the pass and rejects, and nothing is left unhandled', async () => {
    const { client } = await startQueries(final);
    const pass = reconcileTransfers({
      client,
      receiver: receiverOf(),
      pending: transfers(50),
      concurrency: 1,
      onProgress: async () => {
        await pause(1);
        throw new Error('the log is full');
      },
    });
    expect(await catchError(pass)).toMatchObject({
      code: 'ON_PROGRESS_FAILED',
      message: '`onProgress` threw: the log is full',
      report: { processed: 1 },
    });
  });

  test('in the cleanup of `pending` does not hide the cause', async () => {
    const { client } = await startQueries(final);
    function* cursor(): Generator<PendingTransfer> {
      try {
        yield* transfers(50);
      } finally {
        throw new Error('cleanup');
      }
    }
    const onProgress = (): void => {
      throw new Error('the cause');
    };
    const options = { client, concurrency: 1 };
    const both = await catchError(
      reconcileTransfers({ ...options, receiver: receiverOf(), pending: cursor(), onProgress }),
    );
    expect(both.message).toBe('`onProgress` threw: the cause');
    const one = await catchError(
      reconcileTransfers({ ...options, receiver: receiverOf(), pending: cursor(), limit: 2 }),
    );
    expect(one).toMatchObject({ message: '`pending` threw: cleanup', report: { processed: 2 } });
  });
});

test('an abort while the last transfers are read is reported', async () => {
  const service = await startQueries(() => () => undefined);
  const controller = new AbortController();
  const pass = reconcileTransfers({
    client: service.client,
    receiver: receiverOf(),
    pending: transfers(3),
    signal: controller.signal,
  });
  await vi.waitUntil(() => service.received.length === 3);
  controller.abort();
  expect(await pass).toMatchObject({ pending: 3, stopped: 'aborted', cursor: undefined });
});

test('an abort after everything was read does not count', async () => {
  const { client } = await startQueries(final);
  const controller = new AbortController();
  const report = await reconcileTransfers({
    client,
    receiver: receiverOf(),
    pending: transfers(1),
    signal: controller.signal,
    onProgress: async () => {
      await pause(20); // `pending` ends meanwhile.
      controller.abort();
    },
  });
  expect(report).toMatchObject({ processed: 1, stopped: undefined });
});

test('a receiver with confirmWith reads each transfer once', async () => {
  const { client, received } = await startQueries(final);
  const receiver = receiverOf({ confirm: confirmWith(client) });
  expect(await reconcileTransfers({ client, receiver, pending: transfers(100) })).toMatchObject({ processed: 100 });
  expect(received).toHaveLength(100);
});
