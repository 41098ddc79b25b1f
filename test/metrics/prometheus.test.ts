import { channel, hasSubscribers } from 'node:diagnostics_channel';
import { AggregatorRegistry, Counter, Gauge, Histogram, register, Registry } from 'prom-client';
import { memoryStore, transferCallbackListener, transferCallbackReceiver } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { outcomes } from '../../src/core/outcomes.js';
import { later, otherService, receiverOf, storeWith } from '../core/support.js';
import { containing } from '../support/helpers/containing.js';
import { post } from '../support/helpers/post.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { deliveries, publishRun, readSeries, registerMetrics, type Series } from './support.js';

const http = { source: 'http' };
const outcomeCount = Object.keys(outcomes).length;

const publishProcessed = (timestamp?: string): void => {
  channel('transfer-callbacks:outcome').publish({
    ...{ outcome: 'processed', event: 'transfer.success', source: 'http', durationMs: 5 },
    timestamp,
  });
};

/** The series of deliveries that count any. */
function counted(series: Series): string[] {
  const name = 'transfer_callbacks_deliveries_total';
  return [...series].flatMap(([text, value]) => (text.startsWith(name) && value > 0 ? [text] : [])).sort();
}

test('before the first delivery every counter and histogram is there at zero, and no time is', async () => {
  const series = await registerMetrics().series();
  expect([...series.values()].filter((value) => value !== 0)).toEqual([]);
  const names = [...series.keys()];
  expect(names).toEqual(
    expect.arrayContaining([
      ...[deliveries('conflict', 'http'), deliveries('closing', 'http')],
      ...['overlaps', 'unrecorded', 'verified_invalid'].map((name) => `transfer_callbacks_${name}_total`),
      'transfer_callbacks_reconciled_total{result="unknown"}',
      'transfer_callbacks_outcome_age_seconds_count{source="reconciliation"}',
    ]),
  );
  expect(names.filter((text) => text.startsWith('transfer_callbacks_deliveries_total'))).toHaveLength(
    3 * outcomeCount - 3,
  );
  expect(names.filter((text) => /timestamp|open_transfers/.test(text))).toEqual([]);
  expect(series.size).toBeLessThan(3 * outcomeCount - 3 + (2 * outcomeCount - 3) * 16 + 2 * 13 + 12);
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
    const now = await series();
    expect(counted(now)).toEqual([
      deliveries('conflict', 'reconciliation'),
      deliveries('duplicate', 'http'),
      deliveries('handler_failed', 'http'),
      deliveries('invalid', 'http'),
      deliveries('processed', 'http'),
    ]);
    const duration = 'transfer_callbacks_delivery_duration_seconds_count{outcome="duplicate",event="transfer"}';
    expect(now.get(duration)).toBe(1);
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
    expect(counted(await series())).toEqual([deliveries('timed_out', 'http')]);
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
    const service = otherService as never;
    const receiver = receiverOf({ ...recordingOptions().options, service, onOther: () => undefined });
    await receiver.receive({ type: 'charge.paid', data: { id: '7' } }, http);
    await receiver.receive(transferSucceeded(), http);
    await receiver.receive({}, http);
    const now = await series();
    expect(counted(now)).toEqual(
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
    expect(counted(now)).toEqual([deliveries('ignored', 'http'), deliveries('processed', 'http')].sort());
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
    const url = await serveForTest(
      transferCallbackListener({ store: memoryStore(), onSuccess: () => undefined, onFailed, logger: false }),
    );
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

const lastEnd = 'transfer_callbacks_reconciliation_last_end_timestamp_seconds';
const oldestOpen = 'transfer_callbacks_oldest_open_transfer_timestamp_seconds';

describe('a reconciliation run', () => {
  const createdAt = new Date('2026-01-15T10:30:00.000Z');

  test('adds its transfers by result, and shows what is still open', async () => {
    const { series } = registerMetrics();
    publishRun({ processed: 3, duplicate: 5, pending: 2, unknown: 1, failed: 1 }, createdAt);
    publishRun({ processed: 1, pending: 2, unknown: 1 }, createdAt);
    const now = await series();
    expect(now.get('transfer_callbacks_reconciled_total{result="processed"}')).toBe(4);
    expect(now.get('transfer_callbacks_reconciled_total{result="failed"}')).toBe(1);
    expect(now.get('transfer_callbacks_open_transfers')).toBe(3);
    expect(now.get(oldestOpen)).toBe(createdAt.getTime() / 1_000);
    expect(Math.abs(Date.now() / 1_000 - (now.get(lastEnd) ?? 0))).toBeLessThan(60);
  });

  test('that leaves nothing open removes the time of the oldest', async () => {
    const { series } = registerMetrics();
    publishRun({ pending: 1 }, createdAt);
    publishRun({ processed: 1 });
    const now = await series();
    expect([now.get('transfer_callbacks_open_transfers'), now.has(oldestOpen)]).toEqual([0, false]);
  });

  test.each(['limit', 'aborted'])(
    'that was stopped as `%s` has ended, but does not know what is open',
    async (stopped) => {
      const { series } = registerMetrics();
      publishRun({ pending: 1, stopped }, createdAt);
      const now = await series();
      const names = [lastEnd, 'transfer_callbacks_open_transfers', oldestOpen];
      expect(names.map((name) => now.has(name))).toEqual([true, false, false]);
    },
  );

  test('that was stopped by a failure counts as no run', async () => {
    const { series } = registerMetrics();
    publishRun({ failed: 10, stopped: 'refused' }, createdAt);
    const now = await series();
    expect(now.get('transfer_callbacks_reconciled_total{result="failed"}')).toBe(10);
    expect(now.has(lastEnd)).toBe(false);
  });
});

test('of the workers of a cluster, the most open transfers and the oldest of them count', async () => {
  const snapshots: object[] = [];
  for (const [pending, createdAtMs] of [[3, 9_000] as const, [2, 5_000] as const]) {
    const { registry, stop } = registerMetrics();
    publishRun({ pending }, new Date(createdAtMs));
    snapshots.push(await registry.getMetricsAsJSON());
    stop();
  }
  const series = await readSeries(AggregatorRegistry.aggregate(snapshots));
  expect(series.get(oldestOpen)).toBe(5);
  expect(series.get('transfer_callbacks_open_transfers')).toBe(3);
});

describe('the registration', () => {
  test('ends with `stop`: nothing is subscribed, and nothing is left in the registry', async () => {
    const { registry, stop } = registerMetrics();
    expect(hasSubscribers('transfer-callbacks:outcome')).toBe(true);
    stop();
    expect(hasSubscribers('transfer-callbacks:outcome')).toBe(false);
    expect(hasSubscribers('transfer-callbacks:reconciled')).toBe(false);
    expect((await registry.metrics()).trim()).toBe('');
    const again = prometheusMetrics({ Counter, Gauge, Histogram, registers: [registry] });
    stop();
    expect(registry.getMetricsAsArray()).toHaveLength(11);
    again();
  });

  test('goes to every registry given, and not to the global one', () => {
    const registers = [new Registry(), new Registry()];
    const stop = prometheusMetrics({ Counter, Gauge, Histogram, registers });
    for (const registry of registers) expect(registry.getMetricsAsArray()).toHaveLength(11);
    expect(register.getMetricsAsArray()).toEqual([]);
    stop();
    for (const registry of registers) expect(registry.getMetricsAsArray()).toEqual([]);
  });

  test.each([
    [undefined, 'Expected `client` to be an object, got undefined.'],
    [{ Counter, Gauge, Histogram }, 'Expected `registers` to be an array of registries, got undefined.'],
    [{ Counter, Gauge, Histogram, registers: [] }, 'Expected `registers` to be an array of registries, got an array.'],
    [{ Counter, Gauge, registers: [register] }, 'Expected `Histogram` to be a class of prom-client, got undefined.'],
  ])('is refused without what it needs', (client, message) => {
    const fault = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: containing(message) }) as Error;
    expect(() => prometheusMetrics(client as never)).toThrow(fault);
  });
});

test('another copy of the package feeds the same metrics', async () => {
  const { series } = registerMetrics();
  vi.resetModules();
  const copy = await import('transfer-callbacks');
  const receiver = copy.transferCallbackReceiver({
    store: copy.memoryStore(),
    onSuccess: () => undefined,
    onFailed: () => undefined,
    logger: false,
  });
  await receiver.receive(transferSucceeded(), http);
  await receiverOf().receive(transferSucceeded(), http);
  expect((await series()).get(deliveries('processed', 'http'))).toBe(2);
});
