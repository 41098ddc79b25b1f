import { channel } from 'node:diagnostics_channel';
import { memoryStore, transferCallbackListener, transferCallbackReceiver } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { outcomes } from '../../src/core/outcomes.js';
import { later, otherService, receiverOf, storeWith } from '../core/support.js';
import { post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { serve } from '../support/servers/serve.js';
import { deliveries, registerMetrics, type Series } from './support.js';

const http = { source: 'http' };
const outcomeCount = Object.keys(outcomes).length;

const publishProcessed = (timestamp?: string): void => {
  channel('transfer-callbacks:outcome').publish({
    ...{ outcome: 'processed', event: 'transfer.success', source: 'http', durationMs: 5 },
    timestamp,
  });
};

function positive(series: Series, name: string): string[] {
  return [...series].filter(([text, value]) => text.startsWith(name) && value > 0).map(([text]) => text);
}

describe('before the first delivery', () => {
  test('every counter and histogram is there at zero, and no time is', async () => {
    const series = await registerMetrics().series();
    expect([...series.values()].filter((value) => value !== 0)).toEqual([]);
    const counted = [...series.keys()].filter((text) => text.startsWith('transfer_callbacks_deliveries_total'));
    expect(counted).toHaveLength(3 * outcomeCount - 3);
    expect(counted).toEqual(expect.arrayContaining([deliveries('conflict', 'http'), deliveries('closing', 'http')]));
    expect(series.get('transfer_callbacks_overlaps_total')).toBe(0);
    expect(series.get('transfer_callbacks_unrecorded_total')).toBe(0);
    expect(series.get('transfer_callbacks_verified_invalid_total')).toBe(0);
    expect(series.get('transfer_callbacks_reconciled_total{result="unknown"}')).toBe(0);
    expect(series.get('transfer_callbacks_outcome_age_seconds_count{source="reconciliation"}')).toBe(0);
    expect([...series.keys()].filter((text) => text.includes('timestamp') || text.includes('open_transfers'))).toEqual(
      [],
    );
    expect(series.size).toBeLessThan(3 * outcomeCount - 3 + (2 * outcomeCount - 3) * 16 + 2 * 13 + 12);
  });
});

describe('a delivery', () => {
  test('is counted once, by outcome and source', async () => {
    const { series } = registerMetrics();
    const receiver = receiverOf({ onFailed: () => Promise.reject(new Error('no')) });
    const callback = transferSucceeded();
    await receiver.receive(callback, http);
    await receiver.receive(callback, http);
    await receiver.receive(transferSucceeded({ ...callback.data, amount: 1 }), { source: 'reconciliation' });
    await receiver.receive(transferFailed(), http);
    await receiver.receive({}, http);
    expect(positive(await series(), 'transfer_callbacks_deliveries_total').sort()).toEqual([
      deliveries('conflict', 'reconciliation'),
      deliveries('duplicate', 'http'),
      deliveries('handler_failed', 'http'),
      deliveries('invalid', 'http'),
      deliveries('processed', 'http'),
    ]);
    expect(
      (await series()).get('transfer_callbacks_delivery_duration_seconds_count{outcome="duplicate",event="transfer"}'),
    ).toBe(1);
  });

  test('leaves the time at which it ended', async () => {
    const { series } = registerMetrics();
    const before = Date.now() / 1_000;
    await receiverOf().receive({}, http);
    const at = (await series()).get('transfer_callbacks_last_delivery_timestamp_seconds{source="http"}') ?? 0;
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(Date.now() / 1_000);
  });

  test('that ends late is counted as timed out only', async () => {
    const { series } = registerMetrics();
    const handling = later();
    const ended = later();
    const receiver = receiverOf({
      handlerTimeoutMs: 20,
      onSuccess: () => handling.promise,
      onOutcome: ({ late }) => {
        if (late) ended.resolve();
      },
    });
    await receiver.receive(transferSucceeded(), http);
    handling.resolve();
    await ended.promise;
    expect(positive(await series(), 'transfer_callbacks_deliveries_total')).toEqual([deliveries('timed_out', 'http')]);
  });

  test('that overlaps is counted, and one that could not be recorded', async () => {
    const { series } = registerMetrics();
    const overlapping = storeWith({ granted: () => ({ settle: () => Promise.resolve({ overlapped: true }) }) });
    await receiverOf({ store: overlapping }).receive(transferSucceeded(), http);
    const forgetful = storeWith({ granted: () => ({ settle: () => Promise.reject(new Error('down')) }) });
    const receiver = receiverOf({ store: forgetful, storeTimeoutMs: 50 });
    onTestFinished(async () => {
      await receiver.close({ timeoutMs: 0 });
    });
    await receiver.receive(transferSucceeded(), http);
    const now = await series();
    expect(now.get('transfer_callbacks_overlaps_total')).toBe(1);
    expect(now.get('transfer_callbacks_unrecorded_total')).toBe(1);
  });

  test('that is invalid is counted once more if a verifier accepted its sender', async () => {
    const { series } = registerMetrics();
    const receiver = receiverOf();
    await receiver.receive({}, http);
    await receiver.receive({}, { ...http, verify: () => false });
    expect((await series()).get('transfer_callbacks_verified_invalid_total')).toBe(0);
    await receiver.receive({}, { ...http, verify: () => true });
    expect((await series()).get('transfer_callbacks_verified_invalid_total')).toBe(1);
  });

  test('is counted by its kind: of a transfer, of another event, or refused before that was known', async () => {
    const { series } = registerMetrics();
    const receiver = receiverOf({
      ...recordingOptions().options,
      service: otherService as never,
      onOther: () => undefined,
      logger: false,
    });
    await receiver.receive({ type: 'charge.paid', data: { id: '7' } }, http);
    await receiver.receive(transferSucceeded(), http);
    await receiver.receive({}, http);
    const now = await series();
    expect(positive(now, 'transfer_callbacks_deliveries_total').sort()).toEqual(
      [deliveries('processed', 'http', 'other'), deliveries('processed', 'http'), deliveries('invalid', 'http')].sort(),
    );
    expect(now.has(deliveries('invalid', 'http', 'other'))).toBe(false);
    expect(now.has(deliveries('processed', 'reconciliation', 'other'))).toBe(false);
  });

  test('is counted without a kind if the definition of the service needs no handler for it', async () => {
    const { series } = registerMetrics();
    const service = defineService({
      read: ({ event, id }: { event: string; id: number }) =>
        event === 'customer' ? { ignored: event } : { state: event, id, externalId: id },
      states: { paid: 'SUCCESS', bounced: 'FAILED', waiting: 'PENDING' },
    });
    const handlers = { onSuccess: () => undefined, onFailed: () => undefined };
    const receiver = transferCallbackReceiver({ store: memoryStore(), service, ...handlers, logger: false });
    expect((await series()).get(deliveries('ignored', 'http'))).toBe(0);
    for (const event of ['customer', 'waiting', 'paid']) await receiver.receive({ event, id: 7 }, http);
    const now = await series();
    expect(now.get(deliveries('ignored', 'http'))).toBe(2);
    expect(positive(now, 'transfer_callbacks_deliveries_total').sort()).toEqual(
      [deliveries('ignored', 'http'), deliveries('processed', 'http')].sort(),
    );
    expect(now.has(deliveries('ignored', 'http', 'transfer'))).toBe(false);
  });

  test('from more than ten sources is counted as from `other`', async () => {
    const { series } = registerMetrics();
    const receiver = receiverOf();
    for (let number = 1; number <= 20; number += 1) await receiver.receive({}, { source: `queue-${number}` });
    const now = await series();
    expect(now.get(deliveries('invalid', 'queue-8'))).toBe(1);
    expect(now.has(deliveries('invalid', 'queue-9'))).toBe(false);
    expect(now.get(deliveries('invalid', 'other'))).toBe(12);
  });
});

describe('the age of an outcome', () => {
  const age = (end: string): string => `transfer_callbacks_outcome_age_seconds_${end}`;

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
    expect((await series()).get(age('count{source="http"}'))).toBe(0);

    expect(await post(url, succeeded)).toMatchObject({ status: 200 });
    const first = await series();
    expect(first.get(age('count{source="http"}'))).toBe(1);
    expect(first.get(age('bucket{le="15",source="http"}'))).toBe(0);
    expect(first.get(age('sum{source="http"}'))).toBeGreaterThanOrEqual(31);
    expect(first.get(age('sum{source="http"}'))).toBeLessThanOrEqual(ageNow());

    // The handler succeeds at the second attempt, and the callback that was handled before is a duplicate.
    expect(await post(url, failed)).toMatchObject({ status: 200 });
    expect(await post(url, succeeded)).toMatchObject({ status: 200 });
    const last = await series();
    expect(last.get(age('count{source="http"}'))).toBe(2);
    expect(last.get(age('sum{source="http"}'))).toBeLessThanOrEqual(2 * ageNow());
    expect(last.get(age('count{source="reconciliation"}'))).toBe(0);
  });

  test('is 0 where the clock of the service is ahead', async () => {
    const { series } = registerMetrics();
    publishProcessed(new Date(Date.now() + 60_000).toISOString());
    const now = await series();
    expect(now.get(age('count{source="http"}'))).toBe(1);
    expect(now.get(age('sum{source="http"}'))).toBe(0);
  });

  test('is left out where a schema of the app gives no time', async () => {
    const { series } = registerMetrics();
    publishProcessed();
    publishProcessed('yesterday');
    const now = await series();
    expect(now.get(age('count{source="http"}'))).toBe(0);
    expect(now.get(deliveries('processed', 'http'))).toBe(2);
  });
});
