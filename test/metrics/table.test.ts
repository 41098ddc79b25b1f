import { expect, test } from 'vitest';
import { metrics } from '../../src/metrics/table.js';

const all = Object.values(metrics);

/** OpenTelemetry's rules for Prometheus names: dots become underscores, then the unit, then `_total` for a counter. */
function toPrometheus({ openTelemetry, unit, kind }: (typeof all)[number]): string {
  const units: Record<string, string> = { s: '_seconds' };
  // A unit in braces is an annotation and is left out.
  const suffix = unit.startsWith('{') ? '' : units[unit];
  return openTelemetry.replaceAll('.', '_') + String(suffix) + (kind === 'counter' ? '_total' : '');
}

test('there are ten metrics with a sentence each, and OTLP translates their names into those of Prometheus', () => {
  for (const metric of all) expect(toPrometheus(metric)).toBe(metric.prometheus);
  expect(new Set(all.map(({ prometheus }) => prometheus)).size).toBe(10);
  expect(new Set(all.map(({ openTelemetry }) => openTelemetry)).size).toBe(10);
  for (const { help } of all) expect(help).toMatch(/^[A-Z].*\.$/);
});

test('no label can hold an id, an account or a text of a stranger', () => {
  expect([...new Set(all.flatMap(({ labels }) => [...labels]))].sort()).toEqual(['outcome', 'result', 'source']);
});
