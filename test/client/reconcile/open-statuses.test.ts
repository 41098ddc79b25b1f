// The words by which the service calls a transfer open.
import { expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { receiverOf } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { final, old, startQueries, reconcile } from '../support.js';

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

test('a callback whose transfer has another status is unconfirmed, with that status', async () => {
  const success = transferSucceeded();
  const { client } = await startQueries(() => [200, { ...success.data, status: 'SUCCESSFUL' }]);
  const message = containing('but the service reports the status SUCCESSFUL, which is not final.');
  const receiver = receiverOf({ service: client, confirm: true });
  expect(await receiver.receive(success)).toMatchObject({
    outcome: 'unconfirmed',
    error: { code: 'NOT_FINAL', message },
  });
});
