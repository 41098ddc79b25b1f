import { hasMethods, invalidArgument } from '../lib/checks.js';
import { recordMetrics } from './record.js';
import type { Labels, Metric } from './table.js';

interface Options {
  description: string;
  unit: string;
}

/** The part of an OpenTelemetry SDK's observable result that this package uses. */
interface OpenTelemetryResult {
  observe(value: number, attributes: Labels): void;
}

/** The part of an OpenTelemetry meter that this package uses. */
export interface OpenTelemetryMeter {
  createCounter(name: string, options: Options): { add(value: number, attributes: Labels): void };
  createHistogram(
    name: string,
    options: Options & { advice: { explicitBucketBoundaries: number[] } },
  ): { record(value: number, attributes: Labels): void };
  createObservableGauge(
    name: string,
    options: Options,
  ): {
    addCallback(observe: (result: OpenTelemetryResult) => void): void;
    removeCallback(observe: (result: OpenTelemetryResult) => void): void;
  };
}

/**
 * Records the metrics of all receivers and reconciliation runs of this process with a meter. Returns a function that
 * ends the recording and removes the gauges. Counters and histograms keep their last values, because OpenTelemetry
 * cannot remove them. Throws INVALID_ARGUMENT.
 *
 * @example
 * const stop = openTelemetryMetrics(metrics.getMeter('transfer-callbacks'));
 */
export function openTelemetryMetrics(meter: OpenTelemetryMeter): () => void {
  const example = "openTelemetryMetrics(metrics.getMeter('transfer-callbacks'))";
  if (!hasMethods(meter, 'createCounter', 'createHistogram', 'createObservableGauge')) {
    throw invalidArgument('meter', 'an OpenTelemetry meter', meter, example);
  }
  const toOptions = ({ help, unit }: Metric): Options => ({ description: help, unit });
  const removals: (() => void)[] = [];
  const stopRecording = recordMetrics({
    counter(metric) {
      const counter = meter.createCounter(metric.openTelemetry, toOptions(metric));
      for (const labels of metric.zeros) counter.add(0, labels);
      return (value, labels) => {
        counter.add(value, labels);
      };
    },
    histogram(metric) {
      const advice = { explicitBucketBoundaries: [...metric.buckets] };
      const histogram = meter.createHistogram(metric.openTelemetry, { ...toOptions(metric), advice });
      return (value, labels) => {
        histogram.record(value, labels);
      };
    },
    // Use an observable gauge: the SDK would export the last value of another gauge until the process ends.
    gauge(metric) {
      const gauge = meter.createObservableGauge(metric.openTelemetry, toOptions(metric));
      const series = new Map<string, { value: number; labels: Labels }>();
      const observe = (result: OpenTelemetryResult): void => {
        for (const { value, labels } of series.values()) result.observe(value, labels);
      };
      gauge.addCallback(observe);
      removals.push(() => {
        gauge.removeCallback(observe);
      });
      return (value, labels) => {
        const key = Object.values(labels).join();
        if (value === undefined) series.delete(key);
        else series.set(key, { value, labels });
      };
    },
  });
  return () => {
    stopRecording();
    for (const remove of removals) remove();
  };
}
