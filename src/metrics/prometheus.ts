import { invalidArgument } from '../lib/checks.js';
import { recordMetrics } from './record.js';
import { metrics, type Labels, type Metric } from './table.js';

interface Configuration<Registry> {
  name: string;
  help: string;
  labelNames: string[];
  registers: Registry[];
}

/** The part of a registry that this package uses. */
interface PrometheusRegistry {
  removeSingleMetric(name: string): void;
}

/** The part of `prom-client`, or of its successor `@prometheus-io/client`, that this package uses. */
export interface PrometheusClient<Registry extends PrometheusRegistry> {
  Counter: new (configuration: Configuration<Registry>) => { inc(labels: Labels, value: number): void };
  Gauge: new (configuration: Configuration<Registry> & { aggregator: 'max' | 'min' }) => {
    set(labels: Labels, value: number): void;
    remove(labels: Labels): void;
  };
  Histogram: new (configuration: Configuration<Registry> & { buckets: number[] }) => {
    observe(labels: Labels, value: number): void;
    zero(labels: Labels): void;
  };
  /** Where the metrics are registered, for example `[register]`. */
  registers: Registry[];
}

/**
 * Registers the metrics of all receivers and reconciliation runs of this process. Returns a function that ends the
 * recording and removes the metrics. Throws INVALID_ARGUMENT, or the client's own error for a name already registered.
 *
 * @example
 * const stop = prometheusMetrics({ Counter, Gauge, Histogram, registers: [register] });
 */
export function prometheusMetrics<Registry extends PrometheusRegistry>(client: PrometheusClient<Registry>): () => void {
  checkClient(client);
  const { Counter, Gauge, Histogram, registers } = client;
  const toConfiguration = ({ prometheus: name, help, labels }: Metric): Configuration<Registry> => {
    return { name, help, labelNames: [...labels], registers };
  };
  const stopRecording = recordMetrics({
    counter(metric) {
      const counter = new Counter(toConfiguration(metric));
      for (const labels of metric.zeros) counter.inc(labels, 0);
      return (value, labels) => {
        counter.inc(labels, value);
      };
    },
    histogram(metric) {
      const histogram = new Histogram({ ...toConfiguration(metric), buckets: [...metric.buckets] });
      for (const labels of metric.zeros) histogram.zero(labels);
      return (value, labels) => {
        histogram.observe(labels, value);
      };
    },
    gauge(metric) {
      const gauge = new Gauge({ ...toConfiguration(metric), aggregator: metric.aggregator });
      // The client starts a gauge without labels at 0, which as a time means 1970.
      if (metric.labels.length === 0) gauge.remove({});
      return (value, labels) => {
        if (value === undefined) gauge.remove(labels);
        else gauge.set(labels, value);
      };
    },
  });
  let isStopped = false;
  return () => {
    // A second call must not remove metrics that were registered under these names since.
    if (isStopped) return;
    isStopped = true;
    stopRecording();
    for (const registry of registers) {
      for (const { prometheus } of Object.values(metrics)) registry.removeSingleMetric(prometheus);
    }
  };
}

const example = 'prometheusMetrics({ Counter, Gauge, Histogram, registers: [register] })';

/** Throws INVALID_ARGUMENT. */
function checkClient(client: Partial<Record<keyof PrometheusClient<never>, unknown>> | null | undefined): void {
  if (typeof client !== 'object' || client === null) throw invalidArgument('client', 'an object', client, example);
  for (const name of ['Counter', 'Gauge', 'Histogram'] as const) {
    if (typeof client[name] !== 'function')
      throw invalidArgument(name, 'a class of prom-client', client[name], example);
  }
  const { registers } = client;
  if (!Array.isArray(registers) || registers.length === 0) {
    throw invalidArgument('registers', 'an array of registries', registers, example);
  }
}
