import { AggregatorRegistry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { publishRun, readSeries, registerMetrics } from './support.js';

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
    expect(now.get('transfer_callbacks_open_transfers')).toBe(0);
    expect(now.has(oldestOpen)).toBe(false);
  });

  test.each(['limit', 'aborted'])(
    'that was stopped as `%s` has ended, but does not know what is open',
    async (stopped) => {
      const { series } = registerMetrics();
      publishRun({ pending: 1, stopped }, createdAt);
      const now = await series();
      expect(now.has(lastEnd)).toBe(true);
      expect(now.has('transfer_callbacks_open_transfers')).toBe(false);
      expect(now.has(oldestOpen)).toBe(false);
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
