import { describe, expect, test } from 'vitest';
import { reconcileTransfer, reconcileTransfers, type Reconciled } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { final, old, startKnowing, startQueries, transfers, serviceOf, reconcile } from '../support.js';
import { listen } from '../../support/helpers/listen.js';

/** What is published on the channel during this test. */
function listenToReports(): unknown[] {
  const messages: unknown[] = [];
  listen('transfer-callbacks:reconciled', (message) => messages.push(message));
  return messages;
}

describe('the report of a run', () => {
  test('has a cursor: the last transfer up to which all were read, even if later ones are done', async () => {
    const controller = new AbortController();
    const { client } = await startQueries((id) => (id === 'tr-3' ? () => undefined : final(id)));
    const report = await reconcile(client, {
      pending: transfers(10),
      concurrency: 3,
      signal: controller.signal,
      onProgress: (_reconciled, { processed }) => {
        if (processed === 9) controller.abort();
      },
    });
    expect(report).toMatchObject({ stopped: 'aborted', processed: 9, pending: 1, cursor: { id: 'tr-2' } });
  });

  test('counts queries, time, and the oldest transfer that is still open, and is published', async () => {
    const messages = listenToReports();
    const known = new Map(['done', 'copied'].map((id) => [id, final(id)]));
    const { client } = await startQueries(
      (id) => known.get(id) ?? [200, { ...transferSucceeded({ id }).data, status: 'PENDING' }],
    );
    const now = Date.now();
    const ages = {
      done: 9_000_000,
      copied: 8_000_000,
      open: 3_000_000,
      oldest: 5_000_000,
      young: 1_000,
      dateless: NaN,
    };
    const pending = Object.entries(ages).map(([id, ageMs]) => ({ id, createdAt: new Date(now - ageMs) }));
    const receiver = receiverOf({ service: client });
    await reconcileTransfer({ receiver, id: 'copied' });
    const told: Reconciled[] = [];
    const startedAt = performance.now();
    const report = await reconcileTransfers({
      receiver,
      pending,
      concurrency: 1,
      onProgress: (reconciled) => told.push(reconciled),
    });
    expect(report).toMatchObject({ queries: 4, processed: 1, duplicate: 1, pending: 3, failed: 1 });
    expect(report.oldestOpenMs).toBeGreaterThanOrEqual(5_000_000);
    expect(report.oldestOpenMs).toBeLessThan(5_100_000);
    expect(report.durationMs).toBeGreaterThan(0);
    expect(report.durationMs).toBeLessThanOrEqual(performance.now() - startedAt);
    expect(told).toMatchObject([
      { id: 'done', result: 'processed' },
      { id: 'copied', result: 'duplicate' },
      { id: 'open', result: 'pending', reason: 'not_final' },
      { id: 'oldest', result: 'pending', reason: 'not_final' },
      { id: 'young', result: 'pending', reason: 'too_young' },
      { id: 'dateless', result: 'failed' },
    ]);
    const oldestOpenAt = new Date(now - ages.oldest);
    expect(messages).toEqual([{ report, durationMs: report.durationMs, oldestOpenAt, onlyPaid: false }]);
    expect(Object.isFrozen(messages[0])).toBe(true);
  });

  test('is published for a run that rejects too, and not for options that do not fit', async () => {
    const messages = listenToReports();
    const { client } = await startQueries(final);
    await expect(reconcile(client, { pending: 5 as never })).rejects.toThrow('pending');
    const onProgress = (): never => {
      throw new Error('no');
    };
    const report = { processed: 1, stopped: 'error' };
    const pending = [{ id: 'tr-1', createdAt: 0 }];
    await expect(reconcile(client, { pending, onProgress })).rejects.toMatchObject({ report });
    expect(messages).toMatchObject([{ report, oldestOpenAt: undefined }]);
  });

  test('reports where a transaction is invalid, in the error and as issues', async () => {
    const { client } = await startQueries((id) => [
      200,
      { ...transferSucceeded({ id }).data, vouchercode: undefined, provider: undefined },
    ]);
    const { problems } = await reconcile(client, { pending: transfers(1) });
    expect(problems).toMatchObject([
      {
        outcome: 'invalid',
        issues: [{ path: ['data', 'provider'] }, { path: ['data', 'vouchercode'] }],
        error: {
          code: 'NOT_HANDLED',
          message: expect.stringMatching(
            /^The receiver ended with invalid: data\.provider: .*; data\.vouchercode: .*string/,
          ) as string,
        },
      },
    ]);
  });

  test('is safe as JSON: codes and messages, and nothing of the errors of a driver', async () => {
    const driver = Object.assign(new Error('down'), { parameters: ['+237670000000'], connection: {} });
    driver.connection = driver; // JSON.stringify would throw.
    const { client } = await startQueries(final);
    const report = await reconcileTransfers({
      receiver: receiverOf({ service: client, onSuccess: () => Promise.reject(driver) }),
      pending: [...transfers(1), old('a/b')],
    });
    const text = JSON.stringify(report);
    expect(JSON.parse(text)).toMatchObject({
      failed: 2,
      problems: expect.arrayContaining([
        {
          id: 'tr-0',
          status: 'SUCCESS',
          result: 'failed',
          outcome: 'handler_failed',
          error: {
            name: 'TransferClientError',
            code: 'NOT_HANDLED',
            message: containing('The receiver ended with handler_failed: down.'),
          },
        },
        expect.objectContaining({ id: 'a/b', error: expect.objectContaining({ code: 'INVALID_ID' }) as unknown }),
      ]) as unknown,
    });
    expect(text).not.toContain('237670000000');
    expect(report.problems).toContainEqual(
      expect.objectContaining({ error: expect.objectContaining({ cause: driver }) as unknown }),
    );
  });

  test('an outcome that has no error is named alone', async () => {
    const { client } = await startQueries(final);
    const gate = later();
    const receiver = receiverOf({ service: client, onSuccess: () => gate.promise, inFlightWaitMs: 0 });
    const [delivery] = [receiver.receive(transferSucceeded({ id: 'tr-0' }))];
    const { problems } = await reconcileTransfers({ receiver, pending: transfers(1) });
    gate.resolve();
    await delivery;
    expect(problems).toMatchObject([
      {
        outcome: 'in_progress',
        error: { message: containing('The receiver ended with in_progress.'), cause: undefined },
      },
    ]);
  });

  test('a client or a receiver of your own that throws is the failure of one transfer', async () => {
    const receive = () => Promise.reject(new Error('the queue is full'));
    const run = (getTransaction: () => Promise<unknown>) =>
      reconcileTransfers({
        receiver: { receive, options: { service: serviceOf({ getTransaction }) } },
        pending: [old('a')],
      });
    const cause = new Error('the circuit is open');
    const broken = await run(() => Promise.reject(cause));
    expect(broken.problems).toMatchObject([
      { error: { code: 'UNAVAILABLE', message: containing('could not be read: the circuit is open'), cause } },
    ]);
    const unhandled = await run(() => Promise.resolve({ ...transferSucceeded({ id: 'a' }).data }));
    expect(unhandled).toMatchObject({
      failed: 1,
      problems: [
        {
          error: {
            code: 'NOT_HANDLED',
            message: containing('The receiver rejected: the queue is full'),
            cause: new Error('the queue is full'),
          },
        },
      ],
    });
  });
});

test('a run reports every transfer to onProgress, and keeps no more than 100 problems', async () => {
  const { client } = await startKnowing();
  const told: string[] = [];
  const counted = await reconcile(client, {
    pending: Array.from({ length: 130 }, (_, index) => old(`payout-${index}`)),
    concurrency: 8,
    onProgress: ({ id, result }, { unknown }) => told.push(`${id} ${result} ${unknown}`),
  });
  expect(counted).toMatchObject({ unknown: 130, problems: { length: 100 } });
  expect(new Set(told).size).toBe(130);
  expect(told.at(-1)).toMatch(/ unknown 130$/);
});

test('a run in which the service responds with 404 to every query asks for the address, once', async () => {
  const { client } = await startKnowing();
  const pending = ['a', 'b'].map((id) => ({ id, createdAt: 0 }));
  expect(await reconcile(client, { pending })).toMatchObject({
    unknown: 2,
    advice: containing('is its address right'),
  });
  expect(await reconcile(client, { pending: [] })).toMatchObject({ advice: undefined, paid: undefined });
});

const dayMs = 86_400_000;

/** Makes a run over transfers with these statuses at the service. */
async function reconcileStatuses(statuses: readonly string[], ageMs = 3_600_000) {
  const { client } = await startQueries((id) => [
    200,
    { ...transferSucceeded({ id }).data, status: statuses[Number(id.slice(3))] },
  ]);
  const pending = statuses.map((_, index) => ({ id: `tr-${index}`, createdAt: Date.now() - ageMs }));
  const told: unknown[] = [];
  const onProgress = ({ status }: { status?: string | undefined }): unknown => told.push(status);
  const report = await reconcile(client, { pending, concurrency: 1, onProgress });
  return { report, told };
}

test('a run counts the open transfers by status, and reports the status of each', async () => {
  const statuses = ['PENDING', 'SUCCESS', 'Processing', 'PENDING', '__proto__'];
  const { report, told } = await reconcileStatuses(statuses);
  expect(told).toEqual(statuses);
  expect(JSON.parse(JSON.stringify(report))).toMatchObject({ processed: 1, pending: 4 });
  expect(JSON.stringify(report.openStatuses)).toBe('{"PENDING":2,"Processing":1,"__proto__":1}');
  expect(report.advice).toBeUndefined();
});

test('a run counts no more than 20 statuses', async () => {
  const { report } = await reconcileStatuses(Array.from({ length: 30 }, (_, index) => `AT ${index % 25}`));
  expect(Object.values(report.openStatuses)).toEqual([...Array<number>(5).fill(2), ...Array<number>(15).fill(1)]);
});

test('a status that reads as final is reported, however young its transfer is', async () => {
  for (const status of [
    'SUCCESSFUL',
    'success',
    'Succeeded',
    'Failed',
    'FAILURE',
    'COMPLETED',
    'REVERSED',
    ' SUCCESS ',
  ]) {
    const { report } = await reconcileStatuses(['PENDING', status]);
    expect(report.advice, status).toBe(
      `The service reports the status ${status}. If that is final, let ` +
        '`readTransaction` of the service translate it to SUCCESS or FAILED. Otherwise contact the payout service.',
    );
  }
  for (const status of ['PENDING', 'FAILOVER_PENDING', 'SUCCESS_PENDING', 'processing', 'CREATED']) {
    expect((await reconcileStatuses([status])).report.advice, status).toBeUndefined();
  }
});

test('a transfer that is open for longer than a day is reported with its status', async () => {
  const { report } = await reconcileStatuses(['PENDING', 'ENDED'], dayMs + 1_000);
  expect(report.advice).toMatch(
    /^Transfers older than a day have the status PENDING, ENDED\. Contact the payout service\.$/,
  );
  expect((await reconcileStatuses(['PENDING'], dayMs - 60_000)).report.advice).toBeUndefined();
  const { client } = await startQueries(final);
  const pending = [{ ...old('tr-1'), createdAt: 0 }];
  expect(await reconcile(client, { pending })).toMatchObject({ advice: undefined });
});
