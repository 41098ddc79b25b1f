export { openTelemetryMetrics, type OpenTelemetryMeter, type OpenTelemetryResult } from './open-telemetry.js';
export { prometheusMetrics, type PrometheusClient, type PrometheusRegistry } from './prometheus.js';
