// The metrics libraries that are taken by their shape are those that people have.
import { metrics, type Meter } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import * as promClient from 'prom-client';
import { Counter, Gauge, Histogram, register, Registry } from 'prom-client';
import { openTelemetryMetrics, prometheusMetrics } from 'transfer-callbacks/metrics';
import { expectTypeOf } from 'vitest';
import type { OpenTelemetryMeter } from '../../src/metrics/open-telemetry.js';

expectTypeOf<Meter>().toExtend<OpenTelemetryMeter>();

// As they are written: the argument, not only the type.
expectTypeOf(prometheusMetrics({ Counter, Gauge, Histogram, registers: [register] })).toEqualTypeOf<() => void>();
prometheusMetrics({ ...promClient, registers: [register, new Registry()] });
expectTypeOf(openTelemetryMetrics(metrics.getMeter('transfer-callbacks'))).toEqualTypeOf<() => void>();
openTelemetryMetrics(new MeterProvider().getMeter('transfer-callbacks'));

// @ts-expect-error -- where to register?
prometheusMetrics({ Counter, Gauge, Histogram });
// @ts-expect-error -- a registry in place of the classes.
prometheusMetrics(register);
// @ts-expect-error -- one registry in place of several.
prometheusMetrics({ Counter, Gauge, Histogram, registers: register });
// @ts-expect-error -- in the wrong place.
prometheusMetrics({ Counter: Gauge, Gauge: Counter, Histogram, registers: [register] });
// @ts-expect-error -- a provider in place of its meter.
openTelemetryMetrics(new MeterProvider());
// @ts-expect-error -- nothing.
openTelemetryMetrics();
