import { channel, hasSubscribers } from 'node:diagnostics_channel';
import { AggregatorRegistry, Counter, Gauge, Histogram, register, Registry } from 'prom-client';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { metrics } from '../../src/metrics/table.js';
import { later, receiverOf, storeWith } from '../core/support.js';
import { publishPass, readSeries, registerMetrics, type Series } from './support.js';

const names = Object.values(metrics).map(({ prometheus }) => prometheus);
const deliveries = (outcome: string, source: string): string =>
  `transfer_callbacks_deliveries_total{outcome="${outcome}",source="${source}"}`;
const lastEnd = 'transfer_callbacks_reconciliation_last_end_timestamp_seconds';
const oldestOpen = 'transfer_callbacks_oldest_open_transfer_timestamp_seconds';
const http = { source: 'http' };
const publishProcessed = (timestamp?: string): void => {
  channel('transfer-callbacks:outcome').publish({ outcome: 'processed', source: 'http', durationMs: 5, timestamp });
};

function positive(series: Series, name: string): string[] {
  return [...series].filter(([text, value]) => text.startsWith(name) && value > 0).map(([text]) => text);
}

describe('before the first delivery', () => {
  test('every counter and histogram is there at zero, and no time is', async () => {
    const series = await registerMetrics().series();
    expect([...series.values()].filter((value) => value !== 0)).toEqual([]);
    const counted = [...series.keys()].filter((text) => text.startsWith('transfer_callbacks_deliveries_total'));
    expect(counted).toHaveLength(24);
    expect(counted).toEqual(expect.arrayContaining([deliveries('conflict', 'http'), deliveries('closing', 'http')]));
    expect(series.get('transfer_callbacks_overlaps_total')).toBe(0);
    expect(series.get('transfer_callbacks_unrecorded_total')).toBe(0);
    expect(series.get('transfer_callbacks_reconciled_total{result="unknown"}')).toBe(0);
    expect(series.get('transfer_callbacks_outcome_age_seconds_count{source="reconciliation"}')).toBe(0);
    expect([...series.keys()].filter((text) => text.includes('timestamp') || text.includes('open_transfers'))).toEqual(
      [],
    );
    expect(series.size).toBeLessThan(24 + 12 * 16 + 2 * 13 + 12);
  });

  test('the registry knows all ten', () => {
    const { registry } = registerMetrics();
    expect(registry.getMetricsAsArray().map(({ name }) => name)).toEqual(names);
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
    expect((await series()).get('transfer_callbacks_delivery_duration_seconds_count{outcome="duplicate"}')).toBe(1);
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
    const overlapping = storeWith({ lease: () => ({ settle: () => Promise.resolve({ overlapped: true }) }) });
    await receiverOf({ store: overlapping }).receive(transferSucceeded(), http);
    const forgetful = storeWith({ lease: () => ({ settle: () => Promise.reject(new Error('down')) }) });
    const receiver = receiverOf({ store: forgetful, storeTimeoutMs: 50 });
    onTestFinished(async () => {
      await receiver.close({ timeoutMs: 0 });
    });
    await receiver.receive(transferSucceeded(), http);
    const now = await series();
    expect(now.get('transfer_callbacks_overlaps_total')).toBe(1);
    expect(now.get('transfer_callbacks_unrecorded_total')).toBe(1);
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

  test('is counted from the final status to the success of the handler', async () => {
    const { series } = registerMetrics();
    publishProcessed(new Date(Date.now() - 31_000).toISOString());
    const now = await series();
    expect(now.get(age('bucket{le="15",source="http"}'))).toBe(0);
    expect(now.get(age('bucket{le="45",source="http"}'))).toBe(1);
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

describe('a reconciliation pass', () => {
  const createdAt = new Date('2026-01-15T10:30:00.000Z');

  test('adds its transfers by result, and shows what is still open', async () => {
    const { series } = registerMetrics();
    publishPass({ processed: 3, duplicate: 5, pending: 2, unknown: 1, failed: 1 }, createdAt);
    publishPass({ processed: 1, pending: 2, unknown: 1 }, createdAt);
    const now = await series();
    expect(now.get('transfer_callbacks_reconciled_total{result="processed"}')).toBe(4);
    expect(now.get('transfer_callbacks_reconciled_total{result="failed"}')).toBe(1);
    expect(now.get('transfer_callbacks_open_transfers')).toBe(3);
    expect(now.get(oldestOpen)).toBe(createdAt.getTime() / 1_000);
    expect(Math.abs(Date.now() / 1_000 - (now.get(lastEnd) ?? 0))).toBeLessThan(60);
  });

  test('that leaves nothing open removes the time of the oldest', async () => {
    const { series } = registerMetrics();
    publishPass({ pending: 1 }, createdAt);
    publishPass({ processed: 1 });
    const now = await series();
    expect(now.get('transfer_callbacks_open_transfers')).toBe(0);
    expect(now.has(oldestOpen)).toBe(false);
  });

  test('that reached its limit has ended, but does not know what is open', async () => {
    const { series } = registerMetrics();
    publishPass({ pending: 1, stopped: 'limit' }, createdAt);
    const now = await series();
    expect(now.has(lastEnd)).toBe(true);
    expect(now.has('transfer_callbacks_open_transfers')).toBe(false);
    expect(now.has(oldestOpen)).toBe(false);
  });

  test.each(['refused', 'unavailable', 'store_unavailable', 'error', 'aborted', 'closing'])(
    'that was stopped as `%s` counts as no pass',
    async (stopped) => {
      const { series } = registerMetrics();
      publishPass({ failed: 10, stopped }, createdAt);
      const now = await series();
      expect(now.get('transfer_callbacks_reconciled_total{result="failed"}')).toBe(10);
      expect(now.has(lastEnd)).toBe(false);
    },
  );
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
    expect(registry.getMetricsAsArray()).toHaveLength(10);
    again();
  });

  test('is refused by the client where the names are taken', () => {
    const { registry } = registerMetrics();
    expect(() => prometheusMetrics({ Counter, Gauge, Histogram, registers: [registry] })).toThrow(
      'A metric with the name transfer_callbacks_deliveries_total has already been registered.',
    );
  });

  test('goes to every registry given, and not to the global one', () => {
    const registers = [new Registry(), new Registry()];
    const stop = prometheusMetrics({ Counter, Gauge, Histogram, registers });
    for (const registry of registers) expect(registry.getMetricsAsArray()).toHaveLength(10);
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
    const fault = expect.objectContaining({ code: 'INVALID_ARGUMENT', message }) as Error;
    expect(() => prometheusMetrics(client as never)).toThrow(fault);
  });
});

test('of the workers of a cluster, the most open transfers and the oldest of them count', async () => {
  const snapshots: object[] = [];
  for (const [pending, createdAtMs] of [[3, 9_000] as const, [2, 5_000] as const]) {
    const { registry, stop } = registerMetrics();
    publishPass({ pending }, new Date(createdAtMs));
    snapshots.push(await registry.getMetricsAsJSON());
    stop();
  }
  const series = await readSeries(AggregatorRegistry.aggregate(snapshots));
  expect(series.get(oldestOpen)).toBe(5);
  expect(series.get('transfer_callbacks_open_transfers')).toBe(3);
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
