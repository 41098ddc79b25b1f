import { channel } from 'node:diagnostics_channel';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { onTestFinished } from 'vitest';

/** The series of a registry by their text, such as `name{label="value"}`. */
export type Series = ReadonlyMap<string, number>;

export async function readSeries(registry: Registry): Promise<Series> {
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** The text of the series that counts the deliveries with this outcome. */
export const deliveries = (
  outcome: string,
  source: string,
  event = ['ignored', 'invalid', 'unauthorized'].includes(outcome) ? 'none' : 'transfer',
): string => `transfer_callbacks_deliveries_total{outcome="${outcome}",event="${event}",source="${source}"}`;

/** Registers the metrics on a new registry until the test has ended. */
export function registerMetrics(): { registry: Registry; stop: () => void; series: () => Promise<Series> } {
  const registry = new Registry();
  const stop = prometheusMetrics({ Counter, Gauge, Histogram, registers: [registry] });
  onTestFinished(stop);
  return { registry, stop, series: () => readSeries(registry) };
}

type Counts = Partial<Record<'processed' | 'duplicate' | 'pending' | 'unknown' | 'failed', number>>;

/** Publishes the end of a reconciliation run, as `reconcileTransfers` does. */
export function publishRun(run: Counts & { stopped?: string }, oldestOpenAt?: Date): void {
  const report = { processed: 0, duplicate: 0, pending: 0, unknown: 0, failed: 0, stopped: undefined, ...run };
  channel('transfer-callbacks:reconciled').publish({ report, durationMs: 5, oldestOpenAt });
}
