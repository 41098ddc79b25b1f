import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { openTelemetryMetrics } from 'transfer-callbacks/metrics';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { metrics } from '../../src/metrics/table.js';
import { receiverOf } from '../core/support.js';
import { publishRun } from './support.js';
import { outcomes } from '../../src/core/outcomes.js';

const all = Object.values(metrics);

/** OpenTelemetry's rules for Prometheus names: dots become underscores, then the unit, then `_total` for a counter. */
function toPrometheus({ openTelemetry, unit, kind }: (typeof all)[number]): string {
  const units: Record<string, string> = { s: '_seconds' };
  // A unit in braces is an annotation and is left out.
  const suffix = unit.startsWith('{') ? '' : units[unit];
  return openTelemetry.replaceAll('.', '_') + String(suffix) + (kind === 'counter' ? '_total' : '');
}

interface Point {
  readonly attributes: object;
  readonly value: unknown;
}

/** A meter of the real SDK, and what it exports: the points of each metric. */
function startMeter() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  onTestFinished(() => provider.shutdown());
  const stop = openTelemetryMetrics(provider.getMeter('transfer-callbacks'));
  onTestFinished(stop);
  const collect = async () => {
    exporter.reset();
    await provider.forceFlush();
    return exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
  };
  const points = async (name: string): Promise<Point[]> => {
    const found = (await collect()).find(({ descriptor }) => descriptor.name === name);
    return (found?.dataPoints ?? []).map(({ attributes, value }) => ({ attributes, value }));
  };
  return { stop, collect, points };
}

describe('an OpenTelemetry meter', () => {
  test('counts from zero, so that the first conflict is an increase', async () => {
    const { points } = startMeter();
    const counted = await points('transfer_callbacks.deliveries');
    expect(counted).toHaveLength(3 * Object.keys(outcomes).length - 3);
    expect(counted).toContainEqual({ attributes: { outcome: 'conflict', event: 'other', source: 'http' }, value: 0 });
    expect(await points('transfer_callbacks.overlaps')).toEqual([{ attributes: {}, value: 0 }]);
  });

  test('gets all metrics from receivers and runs, with the units and names of the table', async () => {
    const { collect, points } = startMeter();
    const callback = transferSucceeded();
    await receiverOf().receive(callback, { source: 'http' });
    publishRun({ pending: 2 }, new Date(5_000));
    const named = all.map(({ openTelemetry, unit, help }) => ({ name: openTelemetry, unit, description: help }));
    const withoutAge = named.filter(({ name }) => name !== 'transfer_callbacks.outcome.age');
    const exported = (await collect()).map(({ descriptor }) => descriptor);
    const expected = withoutAge.map((each) => expect.objectContaining(each) as object);
    expect(exported).toEqual(expect.arrayContaining(expected));
    expect(await points('transfer_callbacks.deliveries')).toContainEqual({
      attributes: { outcome: 'processed', event: 'transfer', source: 'http' },
      value: 1,
    });
    expect(await points('transfer_callbacks.oldest_open_transfer.timestamp')).toEqual([{ attributes: {}, value: 5 }]);
    expect(await points('transfer_callbacks.open_transfers')).toEqual([{ attributes: {}, value: 2 }]);
  });

  test('has the buckets of the table', async () => {
    const { points } = startMeter();
    await receiverOf().receive({}, { source: 'http' });
    const [point] = await points('transfer_callbacks.delivery.duration');
    expect(point).toMatchObject({
      attributes: { outcome: 'invalid', event: 'none' },
      value: { buckets: { boundaries: metrics.deliveryDuration.buckets } },
    });
  });

  test('exports no oldest open transfer once none is open', async () => {
    const { points } = startMeter();
    publishRun({ pending: 1 }, new Date(5_000));
    publishRun({ processed: 1 });
    expect(await points('transfer_callbacks.oldest_open_transfer.timestamp')).toEqual([]);
    expect(await points('transfer_callbacks.open_transfers')).toEqual([{ attributes: {}, value: 0 }]);
  });

  test('records nothing after `stop`, and exports no gauge', async () => {
    const { points, stop } = startMeter();
    await receiverOf().receive({}, { source: 'http' });
    stop();
    await receiverOf().receive({}, { source: 'http' });
    expect(await points('transfer_callbacks.deliveries')).toContainEqual({
      attributes: { outcome: 'invalid', event: 'none', source: 'http' },
      value: 1,
    });
    expect(await points('transfer_callbacks.last_delivery.timestamp')).toEqual([]);
  });
});

test.each([undefined, { createCounter: () => undefined }])('what is no meter is refused', (meter) => {
  const fault = expect.objectContaining({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('Expected `meter` to be an OpenTelemetry meter, got') as string,
  }) as Error;
  expect(() => openTelemetryMetrics(meter as never)).toThrow(fault);
});

test('there are eleven metrics with a sentence each, and OTLP translates their names into those of Prometheus', () => {
  for (const metric of all) expect(toPrometheus(metric)).toBe(metric.prometheus);
  expect(new Set(all.map(({ prometheus }) => prometheus)).size).toBe(11);
  expect(new Set(all.map(({ openTelemetry }) => openTelemetry)).size).toBe(11);
  for (const { help } of all) expect(help).toMatch(/^[A-Z].*\.$/);
});
