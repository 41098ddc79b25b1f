// The age of an outcome, end to end: from the callback over HTTP to what Prometheus scrapes.
import { memoryStore, transferCallbackListener } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { post } from '../support/post.js';
import { serve } from '../support/serve.js';
import { registerMetrics, type Series } from './support.js';

const age = (series: Series, end: string): number =>
  series.get(`transfer_callbacks_outcome_age_seconds_${end}`) ?? expect.fail(`The age has no ${end}.`);

test('a callback over HTTP is observed with its age since it became final, once its handler has succeeded', async () => {
  const { series } = registerMetrics();
  const onFailed = vi.fn().mockRejectedValueOnce(new Error('The database is down.'));
  const { url, close } = await serve(
    transferCallbackListener({ store: memoryStore(), onSuccess: () => undefined, onFailed, logger: false }),
  );
  onTestFinished(close);
  const finalAtMs = Date.now() - 31_000;
  const timestamp = new Date(finalAtMs).toISOString();
  const succeeded = transferSucceeded({ timestamp });
  const failed = transferFailed({ timestamp });
  const ageNow = (): number => (Date.now() - finalAtMs) / 1_000;

  expect(await post(url, failed)).toMatchObject({ status: 500 });
  expect(age(await series(), 'count{source="http"}')).toBe(0);

  expect(await post(url, succeeded)).toMatchObject({ status: 200 });
  const first = await series();
  expect(age(first, 'count{source="http"}')).toBe(1);
  expect(age(first, 'bucket{le="15",source="http"}')).toBe(0);
  expect(age(first, 'sum{source="http"}')).toBeGreaterThanOrEqual(31);
  expect(age(first, 'sum{source="http"}')).toBeLessThanOrEqual(ageNow());

  // The handler succeeds at the second attempt, and the callback that was handled before is a duplicate.
  expect(await post(url, failed)).toMatchObject({ status: 200 });
  expect(await post(url, succeeded)).toMatchObject({ status: 200 });
  const last = await series();
  expect(age(last, 'count{source="http"}')).toBe(2);
  expect(age(last, 'sum{source="http"}')).toBeLessThanOrEqual(2 * ageNow());
  expect(age(last, 'count{source="reconciliation"}')).toBe(0);
});
