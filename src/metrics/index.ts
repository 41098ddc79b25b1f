export { openTelemetryMetrics, type OpenTelemetryMeter } from './open-telemetry.js';
export { prometheusMetrics, type PrometheusClient } from './prometheus.js';
